package main

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Players that open a channel over RTSP, in every transport that they have, with
// a password, alone and with others, get a picture at once and have no word of
// complaint.
func TestInterop_rtsp(t *testing.T) {
	installed(t, "ffmpeg", "ffprobe")
	t.Parallel()
	s := serveOnLoopback(t, "[rtsp]\nlisten = \"127.0.0.1:0\"\nuser = \"viewer\"\npassword = \"se cret\"\n")
	addr := s.says(&s.stderr, `msg=listening rtsp.listen="?([^" ]+)`)[1]
	url := "rtsp://viewer:se%20cret@" + addr + "/rtp/" + playOnLoopback(t, "clips/one.ts", "")
	var players sync.WaitGroup
	defer players.Wait()
	for _, transport := range []string{"tcp", "udp"} {
		play := func(seconds string) {
			out, err := exec.Command("ffmpeg", "-nostdin", "-v", "warning", "-rtsp_transport", transport, "-t", seconds, "-i", url, "-f", "null", "-").CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("ffmpeg over %s: %v\n%s", transport, err, out)
			}
		}
		for range 2 {
			players.Go(func() { play("5") })
		}
		players.Go(func() {
			time.Sleep(time.Second)
			out, err := exec.Command("ffprobe", "-v", "warning", "-rtsp_transport", transport, "-show_entries", "stream=codec_name", "-of", "csv=p=0", url).CombinedOutput()
			if got := strings.Fields(string(out)); err != nil || !strings.Contains(strings.Join(got, " "), "h264 aac") {
				t.Errorf("ffprobe over %s: got %s and %v, want h264 and aac", transport, got, err)
			}
		})
	}
	wrong := strings.Replace(url, "se%20cret", "wrong", 1)
	out, err := exec.Command("ffprobe", "-v", "error", "-rtsp_transport", "tcp", wrong).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "401") {
		t.Errorf("ffprobe with a wrong password: got %v and %s, want a 401", err, out)
	}
}
