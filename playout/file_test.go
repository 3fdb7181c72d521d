package playout

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

func TestPacketReader_messages(t *testing.T) {
	ts := steady(7, 0, 1).Bytes()
	stretch := func(size, lead int) (out []byte) {
		for i := 0; i < len(ts); i += packetSize {
			p := make([]byte, size)
			copy(p[lead:], ts[i:i+packetSize])
			out = append(out, p...)
		}
		return out
	}
	spoilt := bytes.Clone(ts)
	spoilt[4*packetSize] = 0xAB
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"empty":   {nil, "not an MPEG-TS file: 0 bytes hold no TS packet"},
		"short":   {[]byte("G12"), "not an MPEG-TS file: 3 bytes hold no TS packet"},
		"MP4":     {append([]byte{0, 0, 0, 0x20}, make([]byte, 1000)...), "not an MPEG-TS file: at offset 0 stands 0x00, not the sync byte 0x47"},
		"letter":  {append([]byte("G"), make([]byte, 1000)...), "not an MPEG-TS file: at offset 188 stands 0x00, not the sync byte 0x47"},
		"M2TS":    {stretch(192, 4), "not an MPEG-TS file: at offset 0 stands 0x00, not the sync byte 0x47; it holds packets of 192 bytes (M2TS), which ffmpeg -i FILE -map 0 -c copy OUT.ts rewrites"},
		"204":     {stretch(204, 0), "not an MPEG-TS file: at offset 188 stands 0x00, not the sync byte 0x47; it holds packets of 204 bytes, which ffmpeg -i FILE -map 0 -c copy OUT.ts rewrites"},
		"spoilt":  {spoilt, "lost the grid of TS packets: at offset 752 stands 0xab, not the sync byte 0x47"},
		"cut":     {ts[:len(ts)-1], "EOF"},
		"correct": {ts, "EOF"},
	} {
		var r packetReader
		r.reset("x", bytes.NewReader(tt.file))
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = r.next()
		}
		want := "playout: read x: " + tt.want
		if tt.want == "EOF" {
			want = "EOF"
		}
		if err.Error() != want {
			t.Errorf("%s: after %d packets: %v\nwant %s", name, n-1, err, want)
		}
	}
}

func TestPacketReader_readError(t *testing.T) {
	ts := steady(7, 0, 1).Bytes()
	var r packetReader
	r.reset("x", io.MultiReader(bytes.NewReader(ts[:400]), failing{}))
	var err error
	for err == nil {
		_, err = r.next()
	}
	if want := "playout: read x at offset 376: disk on fire"; err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := playAll(t, Rate{}, false, 0, DiskFile("/does/not/exist.ts")); err == nil || err.Error() != "playout: open /does/not/exist.ts: no such file or directory" {
		t.Errorf("error %v", err)
	}
	if _, err := playAll(t, Rate{}, false, 0, DiskFile(".")); err == nil || err.Error() != "playout: read . at offset 0: is a directory" {
		t.Errorf("error %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, fmt.Errorf("disk on fire") }
