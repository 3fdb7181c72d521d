package ingest

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func linkMessage(kind uint16, family byte, index uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, 10)...)
	b = append(b, family, 0, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, index)
	return append(b, make([]byte, 8)...)
}

func TestDeletedLinks(t *testing.T) {
	messages := slices.Concat(
		linkMessage(unix.RTM_NEWLINK, unix.AF_UNSPEC, 3),
		linkMessage(unix.RTM_DELLINK, unix.AF_UNSPEC, 4),
		linkMessage(unix.RTM_DELLINK, unix.AF_BRIDGE, 5), // left its bridge
		linkMessage(unix.RTM_DELLINK, unix.AF_UNSPEC, 6),
	)
	if got, want := deletedLinks(messages), []int{4, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for n := range messages {
		deletedLinks(messages[:n]) // must not panic
	}
}

func TestRoute_loopback(t *testing.T) {
	// 127.0.0.0/8 is on lo on every host; the query does not mind that it is no
	// group.
	index, err := queryRoute(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if link, err := net.InterfaceByIndex(index); err != nil || link.Flags&net.FlagLoopback == 0 {
		t.Errorf("got interface %v (%v), want loopback", link, err)
	}
}

func TestRouteAnswer_errors(t *testing.T) {
	refusal := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr+4)
	refusal = binary.NativeEndian.AppendUint16(refusal, unix.NLMSG_ERROR)
	refusal = append(refusal, make([]byte, 10)...)
	code := -int32(unix.ENETUNREACH)
	refusal = binary.NativeEndian.AppendUint32(refusal, uint32(code))
	if _, err := routeAnswer(refusal); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("got error %v, want ENETUNREACH", err)
	}
	for n := range refusal {
		if index, err := routeAnswer(refusal[:n]); err == nil {
			t.Errorf("%d bytes of a refusal: got interface %d and no error", n, index)
		}
	}
}

func FuzzNetlink(f *testing.F) {
	f.Add(linkMessage(unix.RTM_DELLINK, unix.AF_UNSPEC, 4))
	f.Add(routeRequest(netip.MustParseAddr("239.1.1.1")))
	f.Add(routeRequest(netip.MustParseAddr("ff0e::1")))
	f.Fuzz(func(t *testing.T, b []byte) {
		deletedLinks(b)
		if index, err := routeAnswer(b); err != nil && index != 0 {
			t.Errorf("got interface %d beside error %v", index, err)
		}
	})
}
