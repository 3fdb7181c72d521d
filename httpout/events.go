package httpout

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"zapcast/tune"
)

const (
	// eventInterval is how often the listeners are told.
	eventInterval = time.Second

	// eventPatience is how long a listener may take no bytes before its
	// connection is closed.
	eventPatience = 10 * time.Second

	// maxListeners bounds what a crowd of status pages costs: memory for one
	// update each, at worst.
	maxListeners = 64
)

// events tells any number of listeners of /api/events what the server is doing:
// what /api/status answers, once an interval. Each update is made once for all
// of them, by a goroutine that is there as long as they are. A listener who is
// slower than the updates gets the newest one when he is ready again.
type events struct {
	interval time.Duration
	make     func() []byte
	running  sync.WaitGroup // the goroutine

	mu        sync.Mutex // guards what follows
	listeners int
	newest    []byte
	fresh     chan struct{} // closed when newest is replaced
	stop      chan struct{} // closed when the last listener has gone
}

// join adds a listener; false where there are too many.
func (e *events) join() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == maxListeners {
		return false
	}
	e.listeners++
	if e.listeners == 1 {
		e.fresh, e.stop = make(chan struct{}), make(chan struct{})
		stop := e.stop
		e.running.Go(func() { e.run(stop) })
	}
	return true
}

func (e *events) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners--
	if e.listeners == 0 {
		close(e.stop)
		e.newest = nil
	}
}

func (e *events) run(stop <-chan struct{}) {
	ticker := time.NewTicker(e.interval)
	defer ticker.Stop()
	for {
		update := e.make()
		e.mu.Lock()
		select {
		case <-stop: // another run may have begun since
			e.mu.Unlock()
			return
		default:
		}
		e.newest = update
		close(e.fresh)
		e.fresh = make(chan struct{})
		e.mu.Unlock()
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// now returns the newest update, nil where there is none yet, and what is
// closed when there is the next.
func (e *events) now() (update []byte, fresh <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest, e.fresh
}

// listen answers /api/events: server-sent events (HTML Living Standard §9.2),
// until the listener or the server goes.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) error {
	if !s.events.join() {
		w.Header().Set("Retry-After", retryAfter)
		return tune.Refuse(http.StatusServiceUnavailable, "too many listeners: expected at most %d at one time", maxListeners)
	}
	defer s.events.leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", noCache)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no") // nginx would keep the events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(w)
	for {
		update, fresh := s.events.now()
		if update != nil {
			control.SetWriteDeadline(time.Now().Add(eventPatience))
			if _, err := w.Write(update); err != nil || control.Flush() != nil {
				return nil
			}
		}
		select {
		case <-fresh:
		case <-r.Context().Done():
			return nil
		}
	}
}

// statusEvent is the event that the page draws its status from.
func (s *Server) statusEvent() []byte {
	var b bytes.Buffer
	b.WriteString("event: status\ndata: ")
	if err := json.NewEncoder(&b).Encode(s.snapshot(time.Now())); err != nil { // it ends the line
		panic("httpout: status: " + err.Error())
	}
	b.WriteByte('\n')
	return b.Bytes()
}
