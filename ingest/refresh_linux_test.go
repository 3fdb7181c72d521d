package ingest

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Runs itself again without privileges where it has them.
func TestRefresh_withoutPrivilegeSaysSo(t *testing.T) {
	if os.Geteuid() == 0 {
		// The binary's own folder may be closed to others.
		binary, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.CreateTemp("", "ingest-test")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(f.Name())
		if _, err := f.Write(binary); err != nil {
			t.Fatal(err)
		}
		if err := f.Chmod(0o755); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		const nobody = 65534
		cmd := exec.Command(f.Name(), "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Dir = os.TempDir()
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without privileges: %v\n%s", err, out)
		}
		return
	}

	lo := loopback(t)
	var log bytes.Buffer
	r, err := NewReceiver(ReceiverConfig{Refresh: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "CAP_NET_RAW") {
		t.Errorf("log: got %q, want a warning that names CAP_NET_RAW", log.String())
	}
	group := newGroup(t)
	f := open(t, r, FlowSpec{Group: group, Interface: lo})
	send(t, sendFrom(t, "127.0.0.1", lo), group, "data")
	if got := receive(t, r, f, 1); len(got) != 1 { // several refresh intervals
		t.Errorf("got %q, want the stream as ever", got)
	}
	got := strings.Join(status(f).Warnings, "; ")
	for _, want := range []string{"CAP_NET_RAW", "setcap", "AmbientCapabilities"} {
		if !strings.Contains(got, want) {
			t.Errorf("warnings: got %q, want %s in them", got, want)
		}
	}
}
