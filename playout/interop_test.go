package playout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"zapcast/mpegts"
)

// program returns the path of a program that a test needs. Where it is not
// installed the test skips, or fails if ZAPCAST_TEST_INTEROP=1.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("ZAPCAST_TEST_INTEROP") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs %s: %v", name, err)
	}
	return path
}

// TestClips_decodeWithoutAnErrorWhenLooped has ffmpeg decode three passes over
// each clip, and compares every time stamp with the one before.
func TestClips_decodeWithoutAnErrorWhenLooped(t *testing.T) {
	const passes = 3
	ffmpeg, ffprobe := program(t, "ffmpeg"), program(t, "ffprobe")
	for _, name := range clips {
		t.Run(name, func(t *testing.T) {
			file := clip(t, name)
			once, err := playAll(t, Rate{}, false, 0, file)
			if err != nil {
				t.Fatal(err)
			}
			packets, err := playAll(t, Rate{}, true, passes*len(once), file)
			if err != nil {
				t.Fatal(err)
			}
			var ts []byte
			for _, p := range packets {
				ts = append(ts, p.packet...)
			}
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, ts, 0o600); err != nil {
				t.Fatal(err)
			}

			out, err := exec.Command(ffmpeg, "-nostdin", "-v", "warning", "-i", path, "-map", "0", "-f", "null", "-").CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("ffmpeg: %v\n%s", err, out)
			}
			for _, s := range []struct {
				kind  string
				count int
				step  int64
			}{{"v", 160, 3600}, {"a", 300, 1920}} {
				times := packetTimes(t, ffprobe, path, s.kind)
				if got, want := len(times), passes*s.count; got != want {
					t.Errorf("%d packets of stream %s, want %d", got, s.kind, want)
				}
				for i := 1; i < len(times); i++ {
					if got := times[i] - times[i-1]; got != s.step {
						t.Errorf("stream %s: DTS of packet %d is %d after the one before, want %d", s.kind, i, got, s.step)
					}
				}
			}
		})
	}
}

// packetTimes returns the DTS of a stream's packets, as ffprobe sees them.
func packetTimes(t *testing.T, ffprobe, path, kind string) (dts90k []int64) {
	t.Helper()
	out, err := exec.Command(ffprobe, "-v", "warning", "-select_streams", kind, "-show_entries", "packet=dts", "-of", "csv=p=0", path).Output()
	if err != nil {
		t.Fatalf("ffprobe: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		number, _, _ := strings.Cut(strings.TrimSpace(line), ",")
		if number == "" {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("ffprobe: %v", err)
		}
		dts90k = append(dts90k, n)
	}
	return dts90k
}

// TestTimeline_otherMuxersLoop loops files of other kinds than the clips: with B
// pictures, of constant rate, cut anywhere.
func TestTimeline_otherMuxersLoop(t *testing.T) {
	ffmpeg, ffprobe := program(t, "ffmpeg"), program(t, "ffprobe")
	for name, args := range map[string]string{
		"B pictures":    "-c:v libx264 -preset ultrafast -bf 2 -g 25",
		"constant rate": "-c:v libx264 -preset ultrafast -bf 2 -g 25 -b:v 1M -maxrate 1M -bufsize 500k -muxrate 2M",
		"MPEG-2":        "-c:v mpeg2video -b:v 1M -bf 2 -g 12",
	} {
		for _, cut := range []int{0, 333} { // packets, at either end
			t.Run(fmt.Sprintf("%s, %d cut", name, cut), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x.ts")
				line := "-nostdin -v error -f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -f lavfi -i sine=duration=4 -c:a mp2 " + args + " -f mpegts " + path
				if out, err := exec.Command(ffmpeg, strings.Fields(line)...).CombinedOutput(); err != nil {
					t.Fatalf("ffmpeg: %v\n%s", err, out)
				}
				ts, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				ts = ts[cut*packetSize : len(ts)-cut*packetSize]
				packets, err := playAll(t, Rate{}, true, 3*len(ts)/packetSize, BytesFile("x.ts", ts))
				if err != nil {
					t.Fatal(err)
				}
				var (
					continuity mpegts.Continuity
					out        []byte
					last       int64 = -1
				)
				for i, p := range packets {
					if !continuity.Check(p.packet) {
						t.Fatalf("packet %d: counter of PID %d jumps", i, p.packet.PID())
					}
					if pcr, ok := p.packet.PCR(); ok {
						if last >= 0 && (pcr <= last || pcr > last+ticksPerSecond/5) {
							t.Errorf("packet %d: PCR %d after %d", i, pcr, last)
						}
						last = pcr
					}
					out = append(out, p.packet...)
				}
				if err := os.WriteFile(path, out, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, kind := range []string{"v", "a"} {
					times := packetTimes(t, ffprobe, path, kind)
					for i := 1; i < len(times); i++ {
						if times[i] <= times[i-1] && kind == "v" {
							t.Errorf("stream %s: DTS of packet %d is %d, after %d", kind, i, times[i], times[i-1])
						}
					}
				}
			})
		}
	}
}
