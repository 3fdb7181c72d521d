package fanout

import (
	"errors"
	"net"
	"time"
)

// keepAlive finds out within 50 s that an idle viewer has gone without a word,
// so that its place is free within a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 10 * time.Second, Count: 3}

// prepare sets the options of a stream's connection. One that the system
// refuses is worth a line in the log, no more.
func prepare(c net.Conn) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	return errors.Join(tcp.SetNoDelay(true), tcp.SetKeepAliveConfig(keepAlive), setUserTimeout(tcp))
}
