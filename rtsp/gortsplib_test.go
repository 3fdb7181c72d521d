package rtsp

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	libsdp "github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"
	"github.com/pion/rtp"

	"zapcast/ingest/ingesttest"
)

// A library is an independent server, gortsplib's.
type library struct {
	server *gortsplib.Server
	stream *gortsplib.ServerStream
	media  *libsdp.Media

	address string

	mu       sync.Mutex
	playing  int
	sessions int
	user     string
}

func (l *library) OnSessionOpen(*gortsplib.ServerHandlerOnSessionOpenCtx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions++
}

func (l *library) OnSessionClose(*gortsplib.ServerHandlerOnSessionCloseCtx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions--
}

func (l *library) OnDescribe(ctx *gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	if l.user != "" && !ctx.Conn.VerifyCredentials(ctx.Request, l.user, "secret") {
		return &base.Response{StatusCode: base.StatusUnauthorized}, nil, liberrors.ErrServerAuth{}
	}
	if ctx.Path != "/live" {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	return &base.Response{StatusCode: base.StatusOK}, l.stream, nil
}

func (l *library) OnSetup(ctx *gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, l.stream, nil
}

func (l *library) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.playing++
	return &base.Response{StatusCode: base.StatusOK}, nil
}

func newLibrary(t *testing.T, user string) *library {
	t.Helper()
	l := &library{media: &libsdp.Media{Type: libsdp.MediaTypeVideo, Formats: []format.Format{&format.MPEGTS{}}}, user: user}
	var ln net.Listener
	err := errNoPorts
	for port := 20000; port < 20200 && err != nil; port += 2 { // the first two that are free
		l.server = &gortsplib.Server{
			Handler: l, RTSPAddress: "127.0.0.1:0",
			Listen: func(network, address string) (net.Listener, error) {
				var err error
				ln, err = net.Listen(network, address)
				return ln, err
			},
			UDPRTPAddress: fmt.Sprintf("127.0.0.1:%d", port), UDPRTCPAddress: fmt.Sprintf("127.0.0.1:%d", port+1),
		}
		err = l.server.Start()
	}
	if err != nil {
		t.Fatalf("the independent server does not start: %v", err)
	}
	t.Cleanup(l.server.Close)
	l.address = ln.Addr().String()
	l.stream = &gortsplib.ServerStream{Server: l.server, Desc: &libsdp.Session{Medias: []*libsdp.Media{l.media}}}
	if err := l.stream.Initialize(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stream.Close)
	return l
}

func (l *library) url(t *testing.T, rest string) URL {
	t.Helper()
	u, err := ParseURL("rtsp://" + l.address + rest)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// eventually waits until what holds.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain for %v: %s", patience, what)
		}
	}
}

// send sends n packets and returns what is in them. They are paced, since
// nothing holds a sender of datagrams back.
func (l *library) send(t *testing.T, n int) (ts []byte) {
	t.Helper()
	for i := range n {
		packets := ingesttest.TS(uint32(i), 7)
		err := l.stream.WritePacketRTP(l.media, &rtp.Packet{
			Header:  rtp.Header{Version: 2, PayloadType: 33, SequenceNumber: uint16(i), SSRC: 7},
			Payload: packets,
		})
		if err != nil {
			t.Error(err)
		}
		ts = append(ts, packets...)
		if i%20 == 19 {
			time.Sleep(time.Millisecond)
		}
	}
	return ts
}

func TestLibrary(t *testing.T) {
	for _, way := range []string{OverTCP, OverUDP} {
		t.Run(way, func(t *testing.T) {
			onBoth(t, func(t *testing.T, cfg Config) {
				l := newLibrary(t, "")
				cfg.Transports = []string{way}
				source, err := open(t, cfg, l.url(t, "/live"))
				if err != nil {
					t.Fatal(err)
				}
				sent := make(chan []byte, 1)
				go func() { sent <- l.send(t, 500) }()
				sink := &ingesttest.Sink{T: t}
				drain(t, source, sink, 500*1316)
				if want := <-sent; !bytes.Equal(sink.Bytes, want) {
					t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(want))
				}
				if got := source.Status(); got.Lost > 0 || got.Payload != "mp2t-rtp" {
					t.Errorf("status: got %+v", got)
				}
				_ = source.Close()
				eventually(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.sessions == 0 }, "the server forgets the session")
			})
		})
	}
}

func TestLibrary_auth(t *testing.T) {
	l := newLibrary(t, "user")
	u := l.url(t, "/live")
	u.User, u.Password = "user", "secret"
	client := NewClient(local(Config{}))
	defer client.Close()
	if _, err := client.Describe(t.Context(), Request{URL: u}); err != nil {
		t.Errorf("got %v", err)
	}
	u.Password = "wrong"
	if _, err := client.Describe(t.Context(), Request{URL: u}); err == nil {
		t.Error("a wrong password: got no error")
	}
}
