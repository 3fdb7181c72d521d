// Package access decides who may do what.
//
//	request ─► credentials: query, cookie, Bearer, User-Agent
//	               │ compared with every token, in constant time
//	               ▼
//	           Guard.Check ─► allowed, or 401, 403, 429 and why
//
// There are three rights. A right that no token grants is everybody's, but for
// Admin: that is then reached from the machine itself only, and under a name that
// no foreign page can take (a page whose name resolves to 127.0.0.1 is foreign).
//
// Addresses that try one wrong token after the other have to wait. Redact takes
// tokens and passwords out of what is logged or shown. docs/access.md is the
// page for those who set it up.
package access
