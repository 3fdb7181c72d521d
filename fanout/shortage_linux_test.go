package fanout

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// withoutDescriptors runs f while the process can open no file.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

func TestShared_comesBackAfterAWantOfDescriptors(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{}, s, 100)
	defer r.loop.shutdown()
	viewers := []*viewer{r.watch(&testViewer{room: lots}), r.watch(&testViewer{room: lots})}
	feed := func() {
		for range 100 {
			r.src.queue = append(r.src.queue, s.packets(7))
			r.turn(50 * time.Millisecond)
		}
		r.settle()
	}
	feed()
	withoutDescriptors(t, feed)
	if r.loop.store.share {
		t.Error("without descriptors: want memory in use, got files")
	}
	feed()
	feed()
	feed()
	if !r.loop.store.share {
		t.Error("15 s after the want of descriptors: want files in use, got memory")
	}
	for i, v := range viewers {
		if c := v.conn.(*testViewer); c.err != nil || c.count != s.counter {
			t.Errorf("viewer %d: got up to %d of %d, %v", i, c.count, s.counter, c.err)
		}
	}
}

func TestConnect_worksWithoutADescriptorToSpare(t *testing.T) {
	r := newRig(Config{})
	defer r.loop.shutdown()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{fd: -1}
	withoutDescriptors(t, func() { err = r.loop.connect(v, server) })
	if err != nil {
		t.Fatalf("connect: want a connection, got %v", err)
	}
	v.conn.close()
}
