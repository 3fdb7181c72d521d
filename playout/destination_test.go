package playout

import (
	"net/netip"
	"testing"
)

func TestParseDestination(t *testing.T) {
	at := netip.MustParseAddrPort
	for url, want := range map[string]Destination{
		"rtp://239.1.1.1:5000":            {RTP: true, Addr: at("239.1.1.1:5000")},
		"udp://239.1.1.1:5000":            {Addr: at("239.1.1.1:5000")},
		"RTP://239.1.1.1:5000/":           {RTP: true, Addr: at("239.1.1.1:5000")},
		"udp://@239.1.1.1:5000":           {Addr: at("239.1.1.1:5000")},
		"udp://239.1.1.1":                 {Addr: at("239.1.1.1:1234")},
		"udp://127.0.0.1:9":               {Addr: at("127.0.0.1:9")},
		"rtp://[ff15::7]:5000":            {RTP: true, Addr: at("[ff15::7]:5000")},
		"rtp://[ff15::7]":                 {RTP: true, Addr: at("[ff15::7]:1234")},
		"rtp://[ff02::7%lo]:5000":         {RTP: true, Addr: at("[ff02::7%lo]:5000")},
		"udp://[::ffff:239.1.1.1]:5000":   {Addr: at("239.1.1.1:5000")},
		"rtp://192.0.2.1@232.1.1.1:5000":  {RTP: true, Addr: at("232.1.1.1:5000"), Source: netip.MustParseAddr("192.0.2.1")},
		"rtp://[fd00::1]@[ff35::1]:65535": {RTP: true, Addr: at("[ff35::1]:65535"), Source: netip.MustParseAddr("fd00::1")},
	} {
		got, err := ParseDestination(url)
		if err != nil || got != want {
			t.Errorf("ParseDestination(%q) = %v, %v, want %v", url, got, err, want)
		}
		if again, err := ParseDestination(got.String()); err != nil || again != got {
			t.Errorf("ParseDestination(%q) = %v, %v, want %v", got, again, err, got)
		}
	}
	for _, url := range []string{
		"", "239.1.1.1:5000", "http://239.1.1.1:5000", "rtp://", "rtp://239.1.1.1:0", "rtp://239.1.1.1:65536",
		"rtp://239.1.1:5000", "rtp://group:5000", "rtp://[ff15::7:5000", "rtp://239.1.1.1:5000/x", "rtp://0.0.0.0:5000",
		"rtp://fd00::1@239.1.1.1:5000", "rtp://239.1.1.2@239.1.1.1:5000", "rtp://x@239.1.1.1:5000", "rtp://239.1.1.1:",
	} {
		if d, err := ParseDestination(url); err == nil {
			t.Errorf("ParseDestination(%q) = %v, want an error", url, d)
		}
	}
}

func FuzzParseDestination(f *testing.F) {
	f.Add("rtp://192.0.2.1@232.1.1.1:5000")
	f.Add("udp://[ff02::7%lo]:5000/")
	f.Fuzz(func(t *testing.T, url string) {
		d, err := ParseDestination(url)
		if err != nil {
			return
		}
		if again, err := ParseDestination(d.String()); err != nil || again != d {
			t.Errorf("ParseDestination(%q) = %v, %v, want %v", d, again, err, d)
		}
	})
}
