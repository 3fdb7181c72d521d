// Package nettest gives tests a network of their own: namespaces joined by
// cables, ears on the cables, and cables that lose, delay and repeat.
//
//	lab := nettest.New(t, "rx", "tx")              two namespaces, gone after the test
//	lab.Link("rx eth7 192.0.2.1/24", "tx peer7 192.0.2.2/24")
//	heard := lab.Listen("tx", "peer7")             what comes out of the cable
//	lab.Do("tx", func() { ... })                   sockets of this function are in tx
//
// [Lab.Wire] is a link whose cable is a pair of packet sockets in the test's
// process: it needs no qdisc of the kernel, and knows what it dropped.
//
// A test that uses it is named TestNetns..., and lives in a file for Linux. It
// needs root and the ip command; without them [New] skips the test, or fails it
// where ZAPCAST_TEST_NET=1.
package nettest
