package rtsp

import (
	"strconv"
	"strings"
	"time"
)

// received takes a message of the server.
func (m *machine) received(msg message, now time.Time) {
	if m.state == ended {
		return
	}
	if msg.method != "" {
		m.asked(msg)
		return
	}
	if seq := msg.header.cseq(); m.waits == "" || seq >= 0 && seq != m.waitCSeq || msg.status < 200 {
		return // a stale answer, or one that is only on its way
	}
	m.learn(msg)
	method := m.waits
	switch {
	case m.state == playing:
		m.kept(msg, now)
	case m.state == teardown:
		m.end(m.err)
	case msg.status == statusUnauthorized:
		m.unauthorized(msg, now)
	case msg.status >= 300 && msg.status < 400:
		m.redirect(msg, now)
	case msg.status == statusBadRequest && m.state == setup && !m.standard:
		// A server that cannot read the vendors' transports, and hangs up now.
		m.standard = true
		m.dial(m.url, now)
	case msg.status == statusUnsupportedTransport && m.state == setup:
		m.alternative(msg, now)
	case msg.status != 200 && m.state == options && optional(msg.status):
		m.answered(msg, now) // OPTIONS is a courtesy
	case msg.status != 200:
		m.lost(now, fail(msg.status, "%s: %s answered %s", m.url, method, statusText(msg)))
	default:
		m.answered(msg, now)
	}
}

// optional lists the answers of servers that do not know OPTIONS.
func optional(status int) bool {
	return status == statusNotAllowed || status == statusNotImplemented || status == statusOptionNotSupported
}

func statusText(msg message) string {
	return strings.TrimSpace(strconv.Itoa(msg.status) + " " + clip(msg.reason))
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 200)], "") }

// learn takes what may stand in any answer. Some servers open the session with
// OPTIONS already, and hang up on who does not send its id back.
func (m *machine) learn(msg message) {
	if text := msg.header.get("Session"); text != "" {
		id, parameters, _ := strings.Cut(text, ";")
		m.session = strings.TrimSpace(id)
		for p := range strings.SplitSeq(parameters, ";") {
			name, value, _ := strings.Cut(p, "=")
			seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if strings.EqualFold(strings.TrimSpace(name), "timeout") && err == nil {
				m.timeout = time.Duration(seconds) * time.Second
			}
		}
	}
	if public := msg.header.all("Public"); len(public) > 0 {
		m.options = strings.Join(public, ",")
	}
}

// listed reports whether a method stands in a list.
func listed(list, name string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(word), name) {
			return true
		}
	}
	return false
}

// answered goes on after a 200.
func (m *machine) answered(msg message, now time.Time) {
	m.waits = ""
	switch m.state {
	case options:
		m.prepare(now)
	case describe:
		m.described(msg, now)
	case setup:
		m.live = true
		t, err := parseTransport(msg.header.get("Transport"))
		switch {
		case msg.header.get("Transport") == "":
			m.end(fail(0, "%s: the answer to SETUP names no transport", m.url))
		case err != nil:
			m.end(fail(0, "%s: %v", m.url, err))
		case t.way == OverUDP && m.ports[0] == 0:
			m.end(fail(0, "%s: the server chose UDP, which was not offered", m.url))
		default:
			m.transport = t
			if t.way == OverUDP {
				m.actions = append(m.actions, action{kind: actPunch})
			}
			m.sendPlay(now)
		}
	case play:
		m.state = playing
		m.scale, m.played = msg.header.get("Scale"), msg.header.get("Range")
		m.keepAlive = now.Add(m.interval())
	}
}

// prepare is the step before DESCRIBE, whose x-NAT may need what STUN finds.
func (m *machine) prepare(now time.Time) {
	m.ports, m.mapped, m.retry = [2]uint16{}, unmap(m.mapped), 0
	if !m.headers && listed(strings.Join(m.cfg.Transports, ","), OverUDP) {
		m.state = binding
		m.actions = append(m.actions, action{kind: actBind})
		return
	}
	m.sendDescribe(now)
}

func (m *machine) described(msg message, now time.Time) {
	m.base = msg.header.get("Content-Base")
	if m.base == "" {
		m.base = msg.header.get("Content-Location")
	}
	sdp, err := parseSDP(msg.body)
	if err != nil {
		m.end(fail(0, "%s: bad SDP: %v", m.url, err))
		return
	}
	m.sdp = sdp
	if m.headers {
		m.end(nil)
		return
	}
	m.sendSetup(now)
}

// unauthorized sends the request again with credentials: once for each
// challenge, twice at most.
func (m *machine) unauthorized(msg message, now time.Time) {
	method := m.waits
	user, _ := m.credentials()
	c := parseChallenges(msg.header.all("WWW-Authenticate"))
	switch {
	case user == "" && m.entry.User != "":
		m.end(fail(statusUnauthorized, "%s: %s answered %s: credentials are not handed on to the host of a redirect", m.url, method, statusText(msg)))
	case user == "":
		m.end(fail(statusUnauthorized, "%s: %s answered %s: credentials are needed (rtsp://USER:PASSWORD@HOST/...)", m.url, method, statusText(msg)))
	case c == nil && m.auths == 0:
		m.end(fail(statusUnauthorized, "%s: %s answered %s and asks for neither Basic nor Digest", m.url, method, statusText(msg)))
	case c == nil || m.auths >= maxAuth || m.auths > 0 && c.nonce == m.challenge.nonce && !c.stale:
		m.end(fail(statusUnauthorized, "%s: %s answered %s: the credentials of user %s were refused", m.url, method, statusText(msg), quote(user)))
	default:
		m.challenge = c
		auths := m.auths + 1
		m.again(now)
		m.auths = auths
	}
}

// again sends the request of the present state once more.
func (m *machine) again(now time.Time) {
	switch m.state {
	case options:
		m.request(options, "OPTIONS", m.url.String(), nil, now)
	case describe:
		m.sendDescribe(now)
	case setup:
		m.sendSetup(now)
	case play:
		m.sendPlay(now)
	}
}

// redirect follows a Location, which may be relative to the request.
func (m *machine) redirect(msg message, now time.Time) {
	location := msg.header.get("Location")
	if m.redirects++; m.redirects > maxRedirects {
		m.end(fail(msg.status, "%s: more than %d redirects", m.entry, maxRedirects))
		return
	}
	if strings.HasPrefix(location, "/") {
		location = m.url.root() + location
	}
	to, err := ParseURL(location)
	switch secure := hasPrefixFold(location, "https://"); {
	case secure || hasPrefixFold(location, "http://") && (!m.url.TLS || m.cfg.TrustRedirects):
		failed := fail(msg.status, "%s: %s answered %s to %s, which is not RTSP", m.url, m.waits, statusText(msg), quote(location))
		failed.Location = location
		m.end(failed)
	case location == "":
		m.end(fail(msg.status, "%s: %s answered %s without a Location", m.url, m.waits, statusText(msg)))
	case err != nil:
		m.end(fail(msg.status, "%s: %s answered %s to %s, which cannot be followed: %v", m.url, m.waits, statusText(msg), quote(location), err))
	case m.url.TLS && !to.TLS && !m.cfg.TrustRedirects:
		m.end(fail(msg.status, "%s: redirected from rtsps to plain %s, which is not followed", m.url, to))
	default:
		m.dial(to, now)
	}
}

// alternative offers one transport at a time to a server that refuses the list.
func (m *machine) alternative(msg message, now time.Time) {
	if m.retry++; m.retry > len(offers(m.cfg.Transports, m.ports, "", m.standard)) {
		m.end(fail(msg.status, "%s: SETUP answered %s to every transport offered (%s)", m.url, statusText(msg), strings.Join(m.cfg.Transports, ", ")))
		return
	}
	m.sendSetup(now)
}

// kept takes the answer to a keep-alive.
func (m *machine) kept(msg message, now time.Time) {
	method := m.waits
	m.waits = ""
	switch {
	case msg.status == 200:
		m.auths = 0
	case msg.status == statusUnauthorized:
		user, _ := m.credentials()
		if c := parseChallenges(msg.header.all("WWW-Authenticate")); c != nil && user != "" && m.auths < maxAuth {
			m.challenge = c
			m.auths++
			m.sendKeepAlive(now)
		}
	case method == "GET_PARAMETER" && (msg.status == statusNoSession || optional(msg.status)):
		m.byOptions = true
		m.sendKeepAlive(now)
	case msg.status == statusNoSession:
		m.live = false
		m.end(fail(msg.status, "%s: the server has ended the session: %s", m.url, statusText(msg)))
	}
}

// asked answers a request of the server.
func (m *machine) asked(msg message) {
	h := header{{"CSeq", msg.header.get("CSeq")}}
	if m.session != "" {
		h = append(h, field{"Session", m.session})
	}
	status, reason := 200, "OK"
	switch strings.ToUpper(msg.method) {
	case "OPTIONS":
		h = append(h, field{"Public", "OPTIONS, ANNOUNCE, GET_PARAMETER, SET_PARAMETER"})
	case "SET_PARAMETER", "GET_PARAMETER", "ANNOUNCE", "TEARDOWN":
	default:
		status, reason = statusNotImplemented, "Not Implemented"
	}
	m.actions = append(m.actions, action{kind: actSend, data: appendResponse(nil, status, reason, h)})
	m.live = m.live && !strings.EqualFold(msg.method, "TEARDOWN")
	switch {
	case strings.EqualFold(msg.method, "TEARDOWN"), strings.EqualFold(msg.method, "ANNOUNCE") && tellsEnd(msg):
		m.cfg.Logger.Debug("rtsp: the server announces the end", "source", m.url.String())
		if m.state == playing {
			last := m.actions
			m.end(nil)
			m.actions = last
		}
	case strings.EqualFold(msg.method, "ANNOUNCE"):
		m.cfg.Logger.Debug("rtsp: announcement that is no end", "source", m.url.String(), "notice", notice(msg))
	}
}

func notice(msg message) string {
	for _, name := range []string{"x-notice", "Notice", "x-Announce", "Event-Type"} {
		if text := msg.header.get(name); text != "" {
			return clip(text)
		}
	}
	return ""
}

// tellsEnd reports whether an ANNOUNCE says that the stream is over: notice 2101
// (end of stream) or 2104 (its start, reached backwards), 5400 to 5599 (the
// session was ended by the server), or a body that says so in words.
func tellsEnd(msg message) bool {
	code, _, _ := strings.Cut(notice(msg), " ")
	switch n, err := strconv.Atoi(code); {
	case err != nil:
	case n == 2101, n == 2104, n >= 5400 && n < 5600:
		return true
	default:
		return false
	}
	text := strings.ToLower(notice(msg) + " " + string(msg.body))
	for _, words := range []string{"end of stream", "end-of-stream", "end_of_stream", "eos", "end of clip"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
