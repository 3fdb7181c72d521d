//go:build !linux

package rtsp

import "net"

func newLink(nc net.Conn, _ bool) link { return newGoLink(nc) }

func newPackets(conn *net.UDPConn, _ bool) packetLink { return newGoPackets(conn) }
