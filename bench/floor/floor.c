// floor: the least work that a multicast-to-HTTP relay on Linux can do.
//
// It is a yardstick, not a product: it trusts its input, strips a fixed
// 12-byte RTP header, never reorders, never times a client out. What it costs
// is the price of the system calls themselves, so "our CPU / floor's CPU"
// says how much of the work is ours.
//
//   cc -O3 -o floor floor.c && ./floor PORT [TICK_MS] [FLUSH_MS] [FLUSH_KIB] [ring]
//   GET /rtp/GROUP:PORT   (the group is joined on loopback)
//
// Every TICK_MS all sources are drained with recvmmsg. One caught-up client
// gets the datagrams' payloads straight from the receive slab (one sendmsg).
// Several clients share an append-only memfd, and sendfile serves each of them
// from its own offset, every FLUSH_MS or FLUSH_KIB, whichever comes first.
//
// With "ring" (root) the datagrams are taken from one packet ring (PACKET_MMAP,
// TPACKET_V3) instead of a socket for each group: no system call and no copy
// into the process for receiving. Sockets then only hold the memberships.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 128, PENDING = 1024, MTU = 2048, MAXC = 4096, MAXS = 512, SEG = 4 << 20, BLOCK = 256 << 10, BLOCKS = 8, HEADERS = 20 + 8 + 12 };

struct source;
struct client { int fd; struct source *s; long off; int seg, blocked; };
struct source {
  char key[32];
  int fd, n, clients[MAXC];
  int memfd[2], cur;       // current and previous segment
  long len[2], pend;       // bytes written; bytes not yet offered to clients
  double flushed;
  in_addr_t group; in_port_t port;  // network order
  struct iovec got[PENDING];        // ring: what the block at hand holds for this source
  int ngot;
};

static struct client client[MAXC];   // by fd
static struct source source[MAXS];
static int nsource, ep;
static long flush_bytes = 256 << 10;
static unsigned char slab[BATCH][MTU];
static struct mmsghdr msg[BATCH];
static struct iovec in[BATCH], out[BATCH];
static unsigned char *ring;            // BLOCKS blocks, or 0 for sockets
static int block;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void drop(struct client *c) {
  struct source *s = c->s;
  close(c->fd);
  if (!s) return;
  for (int i = 0; i < s->n; i++)
    if (s->clients[i] == c->fd) { s->clients[i] = s->clients[--s->n]; break; }
  c->s = 0;
}

static void pump(struct client *c) {
  struct source *s = c->s;
  for (;;) {
    if (c->seg != s->cur && c->off >= s->len[c->seg]) { c->seg = s->cur; c->off = 0; }
    long want = s->len[c->seg] - c->off;
    if (want <= 0) return;
    off_t o = c->off;
    ssize_t r = sendfile(c->fd, s->memfd[c->seg], &o, want);
    if (r < 0) { if (errno == EAGAIN) c->blocked = 1; else drop(c); return; }
    c->off += r;
  }
}

static void append(struct source *s, struct iovec *v, int n, long total) {
  if (s->memfd[s->cur] < 0 || s->len[s->cur] + total > SEG) {
    s->cur ^= 1;
    if (s->memfd[s->cur] >= 0) close(s->memfd[s->cur]);
    s->memfd[s->cur] = memfd_create("floor", MFD_CLOEXEC);
    s->len[s->cur] = 0;
    for (int i = 0; i < s->n; i++) {  // whoever still reads the dropped segment jumps ahead
      struct client *c = &client[s->clients[i]];
      if (c->seg == s->cur) c->off = 0;
    }
  }
  if (pwritev(s->memfd[s->cur], v, n, s->len[s->cur]) != total) { perror("pwritev"); exit(1); }
  s->len[s->cur] += total;
  s->pend += total;
}

static void emit(struct source *s, int n, long total) {
  struct iovec *v = out;
  struct client *c = s->n == 1 ? &client[s->clients[0]] : 0;
  if (c && !c->blocked && c->seg == s->cur && c->off == s->len[s->cur]) {
    struct msghdr m = { .msg_iov = v, .msg_iovlen = n };
    ssize_t r = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (r < 0 && errno != EAGAIN) { drop(c); return; }
    if (r == total) return;
    c->blocked = 1;
    for (total -= r > 0 ? r : 0; r > 0 && n; ) {
      if ((size_t)r >= v->iov_len) { r -= v->iov_len; v++; n--; }
      else { v->iov_base = (char *)v->iov_base + r; v->iov_len -= r; r = 0; }
    }
  }
  append(s, v, n, total);
}

static void drain(struct source *s) {
  for (int k = 0; k < 16; k++) {
    int r = recvmmsg(s->fd, msg, BATCH, MSG_DONTWAIT, 0), n = 0;
    long total = 0;
    for (int i = 0; i < r; i++) {
      if (msg[i].msg_len <= 12) continue;
      out[n].iov_base = slab[i] + 12;
      out[n].iov_len = msg[i].msg_len - 12;
      total += out[n++].iov_len;
    }
    if (n && s->n) emit(s, n, total);
    if (r < BATCH) break;
  }
}

static void flush(struct source *s, double t, double age) {
  if (!s->pend || (s->pend < flush_bytes && t - s->flushed < age)) return;
  s->pend = 0;
  s->flushed = t;
  for (int i = s->n - 1; i >= 0; i--)
    if (!client[s->clients[i]].blocked) pump(&client[s->clients[i]]);
}

// walk hands every datagram of the ring's finished blocks to its source.
static void walk(void) {
  for (int k = 0; k < BLOCKS; k++, block = (block + 1) % BLOCKS) {
    struct tpacket_block_desc *b = (void *)(ring + (size_t)block * BLOCK);
    if (!(b->hdr.bh1.block_status & TP_STATUS_USER)) return;
    struct tpacket3_hdr *h = (void *)((char *)b + b->hdr.bh1.offset_to_first_pkt);
    for (unsigned i = 0; i < b->hdr.bh1.num_pkts; i++, h = (void *)((char *)h + h->tp_next_offset)) {
      unsigned char *ip = (unsigned char *)h + h->tp_net;
      for (struct source *s = source; s < source + nsource; s++)
        if (!memcmp(&s->group, ip + 16, 4) && !memcmp(&s->port, ip + 22, 2)) {
          if (s->n && s->ngot < PENDING && h->tp_snaplen > HEADERS)
            s->got[s->ngot++] = (struct iovec){ ip + HEADERS, h->tp_snaplen - HEADERS };
          break;
        }
    }
    for (struct source *s = source; s < source + nsource; s++) {
      for (int at = 0, n; at < s->ngot && s->n; at += n) {
        long total = 0;
        n = s->ngot - at < BATCH ? s->ngot - at : BATCH;
        for (int i = 0; i < n; i++) total += (out[i] = s->got[at + i]).iov_len;
        emit(s, n, total);
      }
      s->ngot = 0;
    }
    b->hdr.bh1.block_status = TP_STATUS_KERNEL;
  }
}

static void open_ring(int tick_ms) {
  int fd = socket(AF_PACKET, SOCK_DGRAM, 0), version = TPACKET_V3, one = 1;
  struct sock_filter udp_multicast[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 16), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xe0, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0xffff),
  };
  struct sock_fprog filter = { 7, udp_multicast };
  struct tpacket_req3 size = { .tp_block_size = BLOCK, .tp_block_nr = BLOCKS, .tp_frame_size = MTU,
                               .tp_frame_nr = BLOCK / MTU * BLOCKS, .tp_retire_blk_tov = tick_ms };
  struct sockaddr_ll lo = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = if_nametoindex("lo") };
  if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
      setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
      setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) ||
      setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &size, sizeof size) ||
      (ring = mmap(0, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED ||
      bind(fd, (void *)&lo, sizeof lo)) { perror("ring"); exit(1); }
}

static struct source *join(const char *key, const char *ip, int port) {
  for (int i = 0; i < nsource; i++) if (!strcmp(source[i].key, key)) return &source[i];
  struct source *s = &source[nsource++];
  snprintf(s->key, sizeof s->key, "%s", key);
  s->memfd[0] = s->memfd[1] = -1;
  s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int one = 1, buf = 4 << 20;
  setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buf, sizeof buf)) setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &buf, sizeof buf);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct ip_mreqn m = { .imr_address.s_addr = htonl(INADDR_LOOPBACK) };
  inet_aton(ip, &a.sin_addr);
  m.imr_multiaddr = a.sin_addr;
  s->group = a.sin_addr.s_addr;
  s->port = a.sin_port;
  if (ring) a.sin_port = htons(1);  // the socket only holds the membership
  if (bind(s->fd, (void *)&a, sizeof a) || setsockopt(s->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m)) { perror(key); exit(1); }
  return s;
}

static void request(struct client *c) {
  char buf[2048], key[32], ip[20];
  int port;
  ssize_t r = recv(c->fd, buf, sizeof buf - 1, 0);
  if (r <= 0) { drop(c); return; }
  buf[r] = 0;
  if (sscanf(buf, "GET /%*3[rtpud]/%31[0-9.:]", key) != 1 || sscanf(key, "%19[0-9.]:%d", ip, &port) != 2) { drop(c); return; }
  static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: close\r\n\r\n";
  send(c->fd, ok, sizeof ok - 1, MSG_NOSIGNAL);
  struct source *s = join(key, ip, port);
  c->s = s; c->seg = s->cur; c->off = s->len[s->cur]; c->blocked = 0;
  s->clients[s->n++] = c->fd;
  struct epoll_event e = { .events = EPOLLRDHUP | EPOLLOUT | EPOLLET, .data.fd = c->fd };
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);  // a client that left is an error of sendfile
  int port = argc > 1 ? atoi(argv[1]) : 5140;
  double tick = (argc > 2 ? atof(argv[2]) : 16) / 1e3, age = (argc > 3 ? atof(argv[3]) : 100) / 1e3;
  if (argc > 4) flush_bytes = atol(argv[4]) << 10;
  if (argc > 5 && !strcmp(argv[5], "ring")) open_ring(tick * 1e3);
  for (int i = 0; i < BATCH; i++) {
    in[i] = (struct iovec){ slab[i], MTU };
    msg[i].msg_hdr = (struct msghdr){ .msg_iov = &in[i], .msg_iovlen = 1 };
  }
  ep = epoll_create1(EPOLL_CLOEXEC);
  int ls = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  if (bind(ls, (void *)&a, sizeof a) || listen(ls, 1024)) { perror("listen"); return 1; }
  struct epoll_event e = { .events = EPOLLIN, .data.fd = ls }, ev[256];
  epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
  for (double next = now();;) {
    double wait = next - now();
    int n = epoll_wait(ep, ev, 256, nsource ? (wait > 0 ? (int)(wait * 1e3 + 0.999) : 0) : -1);
    for (int i = 0; i < n; i++) {
      int fd = ev[i].data.fd;
      if (fd == ls) {
        while ((fd = accept4(ls, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
          if (fd >= MAXC) { close(fd); continue; }
          client[fd] = (struct client){ .fd = fd };
          e = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
          epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
        }
        continue;
      }
      struct client *c = &client[fd];
      if (!c->s) request(c);
      else if (ev[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) drop(c);
      else if (c->blocked) { c->blocked = 0; pump(c); }
    }
    double t = now();
    if (t < next) continue;
    next = next + tick < t ? t + tick : next + tick;
    if (ring) walk();
    for (int i = 0; i < nsource; i++) {
      if (!ring) drain(&source[i]);
      flush(&source[i], t, age);
    }
  }
}
