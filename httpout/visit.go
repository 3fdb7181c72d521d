package httpout

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"zapcast/access"
	"zapcast/tune"
)

// A visit is one request, seen as the viewer sees it: through the proxies that
// the configuration trusts, below the prefix, without credentials in its target.
type visit struct {
	credentials access.Credentials
	path        string     // below the prefix, query included
	client      netip.Addr // zero: a unix socket
	forwarded   bool       // somebody stands between him and us
	scheme      string     // as he has reached us: "http" or "https"
	host        string     // the same, a port included where it is no default
	prefix      string
	token       *access.Token // that lets him in; nil: none is needed
}

// visitKey is the context key of a request's visit.
type visitKey struct{}

func visitOf(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	return v
}

// receive makes the visit of a request, and leaves in the request what those who
// answer it may see and log.
func (s *Server) receive(config *Config, r *http.Request) (*visit, *http.Request, error) {
	v := &visit{scheme: "http", host: r.Host, prefix: config.Prefix}
	v.credentials, r.RequestURI = access.Read(r.RequestURI, r.Header)
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	v.client = peer(r)
	v.through(config, r)
	path, err := tune.Path(r.RequestURI)
	if err != nil {
		return v, r, err
	}
	if !config.allowsHost(v.host) {
		return v, r, tune.Refuse(http.StatusBadRequest, "expected a Host header with a name of this server, found %s", tune.Quote(v.host))
	}
	below, ok := strings.CutPrefix(path, config.Prefix)
	if !ok || below != "" && below[0] != '/' && below[0] != '?' {
		return v, r, tune.Refuse(http.StatusNotFound, "no such path %s", tune.Quote(path))
	}
	v.path = below
	return v, r, nil
}

// peer is the address of the other end of the connection.
func peer(r *http.Request) netip.Addr {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		return c.addr
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap()
}

// through takes the client's address, and the scheme and host that he used, from
// what proxies say, as far as the configuration trusts them. The header
// X-Forwarded-For names who spoke to each proxy, the nearest last.
func (v *visit) through(config *Config, r *http.Request) {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, key := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"} {
		v.forwarded = v.forwarded || r.Header.Get(key) != ""
	}
	if !config.trusts(v.client) {
		return
	}
	for i := len(hops) - 1; i >= 0 && config.trusts(v.client); i-- {
		hop, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(hops[i]), "[]"))
		if err != nil {
			break
		}
		v.client = hop.Unmap()
		r.RemoteAddr = v.client.String()
	}
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ","); first != "" {
		v.host = strings.TrimSpace(first)
	}
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ","); strings.EqualFold(strings.TrimSpace(first), "https") {
		v.scheme = "https"
	}
}

// trusts reports whether an address is a proxy's whose word counts.
func (c *Config) trusts(addr netip.Addr) bool {
	for _, p := range c.Proxies {
		if addr.IsValid() && p.Contains(addr) || !addr.IsValid() && p.Bits() == 0 {
			return true
		}
	}
	return false
}

// name is the client's address for the log.
func (v *visit) name() string {
	if !v.client.IsValid() {
		return "unix"
	}
	return v.client.String()
}

// base is where this client has reached the server, without a slash at the end.
func (v *visit) base() string { return v.scheme + "://" + v.host + v.prefix }

// query is what URLs that this client is given must carry.
func (v *visit) query() string {
	if v.token == nil {
		return ""
	}
	return access.Parameter + "=" + strings.ReplaceAll(url.QueryEscape(v.token.Secret), "+", "%20")
}

// may returns the token that gives a visit a right, nil where it takes none.
func (s *Server) may(config *Config, v *visit, right access.Right) (*access.Token, error) {
	return config.Guard.Check(access.Request{
		Credentials: v.credentials,
		Client:      v.client,
		Local:       access.Local(v.client, v.forwarded, hostName(v.host)),
		Target:      v.path,
	}, right)
}

// rights answers /api/rights: what the page offers this viewer.
func (s *Server) rights(w http.ResponseWriter, r *http.Request) error {
	config, v := s.config.Load(), visitOf(r)
	rights := map[string]bool{}
	for i, name := range access.Rights {
		_, err := s.may(config, v, access.Right(i))
		rights[name] = err == nil
	}
	body, err := json.Marshal(rights)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", noCache)
	answer(config, w, r, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// enter lets a visit in that has the right it needs. A token in the query is
// kept as a cookie, so that a page's own requests carry it.
func (s *Server) enter(config *Config, w http.ResponseWriter, v *visit, right access.Right) error {
	token, err := s.may(config, v, right)
	if err != nil {
		return s.deny(config, w, v, err)
	}
	if v.token = token; token == nil || v.credentials.InQuery == 0 {
		return nil
	}
	http.SetCookie(w, &http.Cookie{
		Name: access.Parameter, Value: url.QueryEscape(token.Secret), Path: v.prefix + "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.scheme == "https",
	})
	return nil
}

// deny makes the answer to a request that may not be answered.
func (s *Server) deny(config *Config, w http.ResponseWriter, v *visit, err error) error {
	refused, ok := err.(*access.Refusal)
	if !ok {
		return err
	}
	switch refused.Code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", refused.Seconds())
	}
	s.counters.denied.Add(1)
	if refused.Wrong {
		s.wrongTokens.log(func(times int64) {
			config.Logger.Warn("wrong token", "client", v.name(), "reason", refused.Reason, "times", times)
		})
	}
	return tune.Refuse(refused.Code, "%s", refused.Reason)
}
