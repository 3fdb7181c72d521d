package httpout

import (
	"net/http"
	"time"

	"zapcast/accesslog"
	"zapcast/fanout"
)

// A recorder notes what an answer comes to, for the access log. Streams leave it
// behind: theirs is written when the viewer has gone.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	gone   bool // the connection is the engine's
}

// Unwrap lets http.ResponseController reach what is below.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// entry is what the access log says of a request in any case.
func entry(r *http.Request, v *visit, received time.Time) accesslog.Entry {
	e := accesslog.Entry{
		At: time.Now(), Client: clientName(r.RemoteAddr), Method: r.Method, Target: r.RequestURI, Proto: r.Proto, Host: r.Host,
		Took: time.Since(received), Referer: r.Referer(), Agent: clip(r.UserAgent(), maxAgent),
	}
	if v != nil && v.token != nil {
		e.User = v.token.Name
	}
	return e
}

// record writes what an answer has come to.
func (w *recorder) record(log *accesslog.Log, r *http.Request, v *visit, received time.Time) {
	if w.gone {
		return
	}
	e := entry(r, v, received)
	e.Status, e.Bytes = w.status, w.bytes
	log.Write(e)
}

// recordStream returns what writes the line of a stream when its viewer has gone;
// nil where there is no access log.
func recordStream(log *accesslog.Log, w http.ResponseWriter, r *http.Request, v *visit, received time.Time) func(fanout.ViewerStatus) {
	if !log.On() {
		return nil
	}
	if rec, ok := w.(*recorder); ok {
		rec.gone = true
	}
	e := entry(r, v, received)
	return func(s fanout.ViewerStatus) {
		e.At, e.Took = time.Now(), time.Since(received)
		e.Status, e.Bytes, e.Channel, e.Start, e.FirstByte = http.StatusOK, s.Bytes, s.Channel, s.Start, s.FirstByte
		go log.Write(e) // the loop must not wait for a disk
	}
}
