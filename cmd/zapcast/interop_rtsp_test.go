package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Players that open a channel over RTSP, in every transport that they have, with
// a password, alone and with others, get a picture at once and have no word of
// complaint.
func TestInterop_rtsp(t *testing.T) {
	installed(t, "ffmpeg", "ffprobe", "vlc")
	t.Parallel()
	s := serveOnLoopback(t, "[rtsp]\nlisten = \"127.0.0.1:0\"\nuser = \"viewer\"\npassword = \"se cret\"\n")
	addr := s.says(&s.stderr, `msg=listening rtsp.listen="?([^" ]+)`)[1]
	group := playOnLoopback(t, "clips/one.ts", "")
	url := "rtsp://viewer:se%20cret@" + addr + "/rtp/" + group
	// Debian's VLC has no more of RTSP than SAT>IP, which knows no passwords.
	// It asks for a channel by its name.
	open := serveOnLoopback(t, "[rtsp]\nlisten = \"127.0.0.1:0\"\n[[channel]]\nname = \"One\"\ngroup = \"News\"\nsources = [\"rtp://"+group+"\"]\n")
	openURL := "rtsp://" + open.says(&open.stderr, `msg=listening rtsp.listen="?([^" ]+)`)[1] + "/News/One"
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
	players.Go(func() {
		if got := vlcPlays(t, openURL, "4"); got != "aac h264" {
			t.Errorf("VLC: got %q, want aac and h264", got)
		}
	})
	wrong := strings.Replace(url, "se%20cret", "wrong", 1)
	out, err := exec.Command("ffprobe", "-v", "error", "-rtsp_transport", "tcp", wrong).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "401") {
		t.Errorf("ffprobe with a wrong password: got %v and %s, want a 401", err, out)
	}
}

// vlcPlays has VLC play url for so many seconds, and returns the codecs of what
// it heard and saw.
func vlcPlays(t *testing.T, url, seconds string) string {
	dir, err := os.MkdirTemp("", "zapcast-vlc-")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer os.RemoveAll(dir)
	args := []string{
		"vlc", "-I", "dummy", "--no-dbus", "--aout", "dummy", "--vout", "dummy", "--run-time", seconds, "--play-and-exit",
		"--sout", "#duplicate{dst=display,dst=std{access=file,mux=ts,dst=" + filepath.Join(dir, "heard.ts") + "}}", url, "vlc://quit",
	}
	if os.Geteuid() == 0 { // as whom it refuses to run
		_ = os.Chmod(dir, 0o777)
		args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("VLC: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		// It has no window here, and says so.
		if strings.Contains(line, " error: ") && !strings.Contains(line, "main interface error") && !strings.Contains(line, "main libvlc error") {
			t.Errorf("VLC: %s", line)
		}
	}
	codecs, _ := exec.Command("ffprobe", "-v", "quiet", "-show_entries", "stream=codec_name", "-of", "csv=p=0", filepath.Join(dir, "heard.ts")).Output()
	words := strings.Fields(string(codecs)) // in any order, and for the programme again
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}
