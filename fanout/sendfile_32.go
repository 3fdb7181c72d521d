//go:build linux && (386 || arm || mips || mipsle)

package fanout

import "golang.org/x/sys/unix"

// sysSendfile is the sendfile(2) that takes a 64-bit offset.
const sysSendfile = unix.SYS_SENDFILE64
