package main

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zapcast/ingest"
)

func TestFCCD_settings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fccd.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("channel = [\"10.0.0.1@232.1.1.1:5000\", \"239.1.1.1:5000\"]\nrate = 80\nunconfirmed = true\nlinger = \"5m\"\n")
	cfg, err := parseFCCD([]string{"--config", file, "--rate", "90", "--interface", "eth1", "--network", "10.1.2.3/16"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := cfg.server(nil)
	want := ingest.FlowSpec{Group: netip.MustParseAddrPort("232.1.1.1:5000"), Source: netip.MustParseAddr("10.0.0.1"), Interface: "eth1"}
	if len(got.Channels) != 2 || got.Channels[0] != want || got.Rate != 90e6 || !got.Unconfirmed || got.Factor != 3 ||
		len(got.Networks) != 1 || got.Networks[0].String() != "10.1.0.0/16" {
		t.Errorf("got %+v", got)
	}

	var page bytes.Buffer
	if _, err := parseFCCD([]string{"--help"}, &page); err == nil || !strings.Contains(page.String(), "--burst-percent N") {
		t.Errorf("help: got %v and %s", err, page.String())
	}
	bad := func(text, want string, args ...string) {
		t.Helper()
		write(text)
		if _, err := parseFCCD(append(args, "--config", file), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q %q: got %v, want %q in it", text, args, err, want)
		}
	}
	bad("", "expected --channel")
	bad("chanel = 1", `"chanel": unknown key`)
	bad("rate = 0", "rate: expected a whole number from 1")
	bad("", `--channel: expected a channel such as "239.1.1.1:5000", found "10.0.0.1:5000"`, "--channel", "10.0.0.1:5000")
	if _, err := parseFCCD([]string{"--listen", "[::1]:5"}, nil); !errors.As(err, new(usageError)) {
		t.Errorf("an IPv6 address: got %v, want a usage error", err)
	}
}
