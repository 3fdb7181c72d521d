//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

// joinResult holds the waiting times of each request of a join case. Cold
// requests ask for a channel that nobody has watched for a while, warm ones for a
// channel that another client is watching.
type joinResult struct {
	Cold, Warm joinTimes
	Faults     counts // of all requests, and of the client that keeps a channel warm
	Error      string
}

// joinTimes are in ms after the request. All but the first are for cases that
// wait for a random-access point.
type joinTimes struct {
	Byte      []float64 // to the first payload byte
	RAP       []float64 // to the first random-access packet
	Decodable []float64 // to a random-access packet that follows PAT and PMT
	// AfterRAP is Decodable less the time to the first random-access point that
	// the sender sent after the request. Cold requests only.
	AfterRAP []float64
}

func (t *joinTimes) add(o joinTimes) {
	t.Byte = append(t.Byte, o.Byte...)
	t.RAP = append(t.RAP, o.RAP...)
	t.Decodable = append(t.Decodable, o.Decodable...)
	t.AfterRAP = append(t.AfterRAP, o.AfterRAP...)
}

const (
	// rapWait bounds the wait for a random-access point: three of their intervals.
	rapWait = 6 * time.Second
	// warmAfter is how long a channel is watched before it counts as warm: long
	// enough for a random-access point to have come by.
	warmAfter = 3 * time.Second
)

// runJoin makes the requests of a join case, one after another.
func runJoin(cfg readConfig) error {
	fmt.Println("ready")
	j := &joiner{cfg: cfg, rnd: rand.New(rand.NewPCG(1, 2)), // the same pauses for every program
		deadline: time.Now().Add(time.Duration(cfg.MaxSeconds) * time.Second)}
	err := j.cold()
	if err == nil {
		err = j.warm()
	}
	if err != nil {
		j.res.Error = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(j.res)
}

// joiner is the one impatient client of a join case.
type joiner struct {
	cfg      readConfig
	rnd      *rand.Rand
	deadline time.Time
	res      joinResult
}

// cold asks for one channel after the other. A server may keep a channel for a
// while after its last client left; it gets that while.
func (j *joiner) cold() error {
	left := make([]time.Time, len(j.cfg.Targets))
	for i := range j.cfg.Joins {
		k := i % len(j.cfg.Targets)
		time.Sleep(time.Until(left[k].Add(j.cfg.Cold)))
		if err := j.pause(); err != nil {
			return err
		}
		if err := j.coldOnce(j.cfg.Targets[k]); err != nil {
			return fmt.Errorf("cold request %d: %w", i, err)
		}
		left[k] = time.Now()
	}
	return nil
}

// coldOnce compares the client with a receiver of the group itself.
func (j *joiner) coldOnce(t target) error {
	if !j.cfg.WaitRAP {
		_, err := j.once(t, &j.res.Cold)
		return err
	}
	w, err := watchGroup(t.Source)
	if err != nil {
		return fmt.Errorf("watch the group: %w", err)
	}
	defer w.close()
	asked, err := j.once(t, &j.res.Cold)
	if err != nil {
		return err
	}
	rap, err := w.nextRAP(asked)
	if err != nil {
		return fmt.Errorf("watch the group: %w", err)
	}
	times := &j.res.Cold
	times.AfterRAP = append(times.AfterRAP, times.Decodable[len(times.Decodable)-1]-ms(rap.Sub(asked)))
	return nil
}

// warm asks for a channel that another client watches all the while.
func (j *joiner) warm() error {
	type result struct {
		faults counts
		err    error
	}
	t := j.cfg.Targets[0]
	stop, held := make(chan struct{}), make(chan result, 1)
	go func() {
		c, err := hold(t, stop)
		held <- result{c, err}
	}()
	time.Sleep(warmAfter)
	var err error
	for i := 0; i < j.cfg.Joins && err == nil; i++ {
		if err = j.pause(); err == nil {
			_, err = j.once(t, &j.res.Warm)
		}
		if err != nil {
			err = fmt.Errorf("warm request %d: %w", i, err)
		}
	}
	close(stop)
	r := <-held
	j.res.Faults.add(r.faults)
	if err == nil && r.err != nil {
		err = fmt.Errorf("watching client: %w", r.err)
	}
	return err
}

// pause keeps requests out of step with the stream: where they wait for a
// random-access point they come at any point between two.
func (j *joiner) pause() error {
	if time.Now().After(j.deadline) {
		return errors.New("reader's time limit")
	}
	span := 150 * time.Millisecond
	if j.cfg.WaitRAP {
		span = gopFrames * time.Second / fps
	}
	time.Sleep(100*time.Millisecond + time.Duration(j.rnd.Int64N(int64(span))))
	return nil
}

// once makes one request, adds its times, and says when it was made.
func (j *joiner) once(t target, times *joinTimes) (asked time.Time, err error) {
	conn, asked, err := dial(t)
	if err != nil {
		return asked, err
	}
	defer conn.Close()
	since := func() float64 { return ms(time.Since(asked)) }
	var first, rap, decodable float64
	var pat, pmt bool
	v := &verifier{source: t.Source}
	v.watch = func(p []byte) {
		switch {
		case pidOf(p) == 0:
			pat = true
		case pidOf(p) == pidPMT:
			pmt = pmt || pat
		case isRAP(p):
			if rap == 0 {
				rap = since()
			}
			if decodable == 0 && pmt {
				decodable = since()
			}
		}
	}
	body := httpBody{v: v}
	_ = conn.SetDeadline(asked.Add(max(rapWait, j.cfg.FirstByte)))
	buf := make([]byte, 64<<10)
	for first == 0 || j.cfg.WaitRAP && decodable == 0 {
		n, err := conn.Read(buf)
		if err != nil {
			return asked, err
		}
		if _, err := body.feed(buf[:n]); err != nil {
			return asked, err
		}
		if first == 0 && v.Bytes > 0 {
			first = since()
		}
	}
	times.Byte = append(times.Byte, first)
	if j.cfg.WaitRAP {
		times.RAP = append(times.RAP, rap)
		times.Decodable = append(times.Decodable, decodable)
	}
	j.res.Faults.add(v.counts)
	return asked, nil
}

// dial sends one request. Its time is from before the connection is made.
func dial(t target) (net.Conn, time.Time, error) {
	addr, req, err := request(t.URL)
	if err != nil {
		return nil, time.Time{}, err
	}
	asked := time.Now()
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return nil, asked, err
	}
	_, err = conn.Write(req)
	return conn, asked, err
}

// hold watches a channel until stop and says what it lost.
func hold(t target, stop chan struct{}) (counts, error) {
	conn, _, err := dial(t)
	if err != nil {
		return counts{}, err
	}
	defer conn.Close()
	body := httpBody{v: &verifier{source: t.Source}}
	buf := make([]byte, 64<<10)
	for {
		select {
		case <-stop:
			return body.v.counts, nil
		default:
		}
		_ = conn.SetDeadline(time.Now().Add(rapWait))
		n, err := conn.Read(buf)
		if err != nil {
			return body.v.counts, err
		}
		if _, err := body.feed(buf[:n]); err != nil {
			return body.v.counts, err
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
