//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64)

package fanout

import "golang.org/x/sys/unix"

const (
	sysSendfile = unix.SYS_SENDFILE // the sendfile(2) that takes a 64-bit offset
	sysMmap     = unix.SYS_MMAP
)
