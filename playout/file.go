package playout

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

const (
	packetSize = 188
	syncByte   = 0x47

	// readSize is what one read asks of the file: few system calls, little memory.
	readSize = 128 << 10
)

// File is a TS file to be played. It is opened anew for each pass.
type File struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// DiskFile is the file at path.
func DiskFile(path string) File {
	return File{path, func() (io.ReadCloser, error) { return os.Open(path) }}
}

// BytesFile is a file whose bytes are at hand. They must not change as long as
// it is played.
func BytesFile(name string, b []byte) File {
	return File{name, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// packetReader reads TS packets one after the other. It reads ahead by
// readSize at most, whatever the size of the file.
type packetReader struct {
	name   string
	r      *bufio.Reader
	offset int64 // of the next packet
}

// reset begins with another file. The zero value has none.
func (r *packetReader) reset(name string, file io.Reader) {
	if r.r == nil {
		r.r = bufio.NewReaderSize(nil, readSize)
	}
	r.r.Reset(file)
	r.name, r.offset = name, 0
}

// next returns the next packet, which is valid until the next call. At the end
// of the file it returns io.EOF; bytes there that are less than a packet are
// left out, for recordings end anywhere. An error names the file and, where it
// is not one of reading, the offset at which a packet should have begun.
func (r *packetReader) next() ([]byte, error) {
	p, err := r.r.Peek(packetSize)
	switch {
	case err == io.EOF && r.offset > 0:
		return nil, io.EOF
	case len(p) > 0 && p[0] != syncByte:
		return nil, r.lostSync(p[0])
	case err == io.EOF:
		return nil, fmt.Errorf("playout: read %s: not an MPEG-TS file: %d bytes hold no TS packet", r.name, len(p))
	case err != nil:
		return nil, fmt.Errorf("playout: read %s at offset %d: %w", r.name, r.offset, bare(err))
	}
	r.r.Discard(packetSize)
	r.offset += packetSize
	return p, nil
}

// lostSync says what is wrong with a file that has no sync byte at the offset
// reached. Files of longer packets, which are common enough, it knows by name.
func (r *packetReader) lostSync(found byte) error {
	if r.offset > packetSize {
		return fmt.Errorf("playout: read %s: lost the grid of TS packets: at offset %d stands 0x%02x, not the sync byte 0x47", r.name, r.offset, found)
	}
	head, _ := r.r.Peek(3 * 204)
	every := func(size, first int) bool {
		for at := first; at < len(head); at += size {
			if head[at] != syncByte {
				return false
			}
		}
		return first+size < len(head)
	}
	hint := ""
	switch {
	case r.offset == 0 && every(192, 4):
		hint = "; it holds packets of 192 bytes (M2TS), which ffmpeg -i FILE -map 0 -c copy OUT.ts rewrites"
	case r.offset == packetSize && every(204, 204-packetSize):
		hint = "; it holds packets of 204 bytes, which ffmpeg -i FILE -map 0 -c copy OUT.ts rewrites"
	}
	return fmt.Errorf("playout: read %s: not an MPEG-TS file: at offset %d stands 0x%02x, not the sync byte 0x47%s", r.name, r.offset, found, hint)
}

// bare takes out of an error what the message around it says already: file,
// address and the system call's name.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
