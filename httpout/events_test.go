package httpout

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Updates are made once an interval for everybody, at once for the first
// listener, and not at all while there is none.
func TestEvents_madeOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		e := events{interval: time.Second, make: func() []byte { made++; return fmt.Appendf(nil, "%d", made) }}
		heard := func() string {
			update, fresh := e.now()
			if update == nil {
				<-fresh
				update, _ = e.now()
			}
			return string(update)
		}
		e.join()
		if got := heard(); got != "1" {
			t.Errorf("the first listener hears %q, want 1", got)
		}
		for range 9 {
			e.join()
			if got := heard(); got != "1" {
				t.Errorf("one more listener hears %q, want 1", got)
			}
		}
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := heard(); got != "4" || made != 4 {
			t.Errorf("after 3.5 s: heard %s, made %d, want 4", got, made)
		}
		for range 10 {
			e.leave()
		}
		e.running.Wait()
		time.Sleep(time.Minute)
		if made != 4 {
			t.Errorf("made %d, want 4: nobody listens", made)
		}
		e.join()
		if got := heard(); got != "5" {
			t.Errorf("a new listener hears %q, want 5", got)
		}
		e.leave()
		e.join() // while the goroutine may not have noticed
		if got := heard(); got == "5" {
			t.Errorf("the next listener hears an old update")
		}
		e.leave()
		e.running.Wait()
	})
}

func TestEvents_limit(t *testing.T) {
	e := events{interval: time.Hour, make: func() []byte { return nil }}
	for i := range maxListeners {
		if !e.join() {
			t.Fatalf("listener %d is refused", i)
		}
	}
	if e.join() {
		t.Errorf("listener %d is let in", maxListeners)
	}
	for range maxListeners {
		e.leave()
	}
	e.running.Wait()
}
