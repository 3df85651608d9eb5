// shoal-test-links: a star of slow links between network namespaces, with real TCP on it.
//
//   shoal-test-links HOST...        HOST = NAMESPACE,ADDRESS,MBIT,DELAY_MS,JITTER_MS,LOSS_PERCENT
//
// Makes a TUN device "link0" in each namespace, which the caller gives its address and sets up once
// "ready" is printed, and carries IPv4 packets between them until SIGTERM. Two hosts of one kind
// are DELAY_MS apart, there and back, and lose LOSS_PERCENT of the packets one way: half of each is
// of either host's link. At the end a line for each host: what went up from it and down to it.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tests/links/emulated_link.h"

namespace shoal {
namespace {

// Where all links are so fast, packets are up to 64 KiB, as network cards take them from TCP: the
// wire has each for half a millisecond. Else they are of the usual 1500 bytes.
constexpr double kLargePacketsFromMbit = 900;
// Before each packet stands what network cards are told of it: struct virtio_net_hdr, whose own
// header is not C++. It goes along unread.
constexpr size_t kCardHeaderBytes = 10;
constexpr size_t kMaxPacketBytes = kCardHeaderBytes + 65535;
constexpr size_t kIpv4HeaderBytes = 20;
constexpr size_t kDestinationOffset = kCardHeaderBytes + 16;

struct HostOptions {
  std::string net_namespace;
  uint32_t address = 0;  // in network order, as packets have it
  double mbit = 0, delay_ms = 0, jitter_ms = 0, loss_percent = 0;
};

absl::StatusOr<HostOptions> ReadHost(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  HostOptions host;
  in_addr address{};
  if (parts.size() != 6 || parts[0].empty() ||
      inet_pton(AF_INET, parts[1].c_str(), &address) != 1 ||
      !absl::SimpleAtod(parts[2], &host.mbit) || !absl::SimpleAtod(parts[3], &host.delay_ms) ||
      !absl::SimpleAtod(parts[4], &host.jitter_ms) ||
      !absl::SimpleAtod(parts[5], &host.loss_percent) || !(host.mbit > 0) ||
      !(host.delay_ms >= 0) || !(host.jitter_ms >= 0) || !(host.loss_percent >= 0) ||
      !(host.loss_percent < 100))
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is not NAMESPACE,ADDRESS,MBIT,DELAY_MS,JITTER_MS,LOSS_PERCENT"));
  host.net_namespace = parts[0];
  host.address = address.s_addr;
  return host;
}

// A TUN device in that namespace, not blocking. This thread is in that namespace afterwards.
absl::StatusOr<int> OpenDevice(const HostOptions& host, bool large_packets) {
  const std::string path = absl::StrCat("/run/netns/", host.net_namespace);
  const int entered = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (entered < 0) return absl::ErrnoToStatus(errno, path);
  const int moved = setns(entered, CLONE_NEWNET);
  close(entered);
  if (moved != 0) return absl::ErrnoToStatus(errno, absl::StrCat("setns ", path));
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) return absl::ErrnoToStatus(errno, "/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  std::strncpy(request.ifr_name, "link0", IFNAMSIZ - 1);
  const unsigned offloads = large_packets ? unsigned{TUN_F_CSUM | TUN_F_TSO4} : 0;
  if (ioctl(device, TUNSETIFF, &request) != 0 || ioctl(device, TUNSETOFFLOAD, offloads) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "a TUN device");
    close(device);
    return status;
  }
  return device;
}

class Star {
 public:
  absl::Status Add(const HostOptions& host, bool large_packets) {
    SHOAL_ASSIGN_OR_RETURN(const int device, OpenDevice(host, large_packets));
    EmulatedLink::Options link{
        .bits_per_second = static_cast<int64_t>(host.mbit * 1e6),
        .delay = FromSeconds(host.delay_ms / 4000),    // a packet and its answer pass four links
        .jitter = FromSeconds(host.jitter_ms / 2000),  // one way: two
        .loss = host.loss_percent / 200,
        .seed = 2 * hosts_.size(),
    };
    EmulatedLink up(link);
    ++link.seed;
    by_address_[host.address] = hosts_.size();
    hosts_.push_back({host.net_namespace, device, std::move(up), EmulatedLink(link)});
    return absl::OkStatus();
  }

  // Carries packets until `stop` is readable.
  void Run(int stop) {
    std::vector<pollfd> ready = {{stop, POLLIN, 0}};
    for (const Host& host : hosts_) ready.push_back({host.device, POLLIN, 0});
    while ((ready[0].revents & POLLIN) == 0) {
      MovePackets();
      const std::optional<timespec> wait = UntilNext();
      ppoll(ready.data(), ready.size(), wait.has_value() ? &*wait : nullptr, nullptr);
      for (size_t i = 0; i < hosts_.size(); ++i)
        if (ready[i + 1].revents != 0) TakePackets(hosts_[i]);
    }
  }

  void PrintCounts() const {
    for (const Host& host : hosts_) {
      std::printf("%s", host.name.c_str());
      for (const EmulatedLink* link : {&host.up, &host.down}) {
        const EmulatedLink::Counts& counts = link->counts();
        std::printf(" %s bytes %" PRIu64 " packets %" PRIu64 " lost %" PRIu64 " dropped %" PRIu64,
                    link == &host.up ? "up" : "down", counts.bytes, counts.packets, counts.lost,
                    counts.dropped);
      }
      std::printf("\n");
    }
  }

 private:
  struct Host {
    std::string name;
    int device;
    EmulatedLink up, down;
  };
  // A packet on its way: first to the middle, then to its host.
  struct Packet {
    Time at{};
    uint64_t number = 0;  // of those of one time the first is first
    std::shared_ptr<const std::string> bytes;
    size_t to = 0;
    bool past_middle = false;
    bool operator<(const Packet& other) const {  // the queue's top is its largest
      return std::pair(at, number) > std::pair(other.at, other.number);
    }
  };

  static Time Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  static int64_t WireBytes(const std::string& bytes) {
    return static_cast<int64_t>(bytes.size() - kCardHeaderBytes);
  }

  // What its namespace sends.
  void TakePackets(Host& host) {
    for (ssize_t size; (size = read(host.device, buffer_.data(), buffer_.size())) > 0;) {
      const auto bytes = static_cast<size_t>(size);
      if (bytes < kCardHeaderBytes + kIpv4HeaderBytes) continue;
      uint32_t destination = 0;
      std::memcpy(&destination, buffer_.data() + kDestinationOffset, sizeof(destination));
      const auto found = by_address_.find(destination);  // IPv6 and multicast are found nowhere
      if (found == by_address_.end()) continue;
      auto packet = std::make_shared<const std::string>(buffer_.data(), bytes);
      if (const std::optional<Time> arrival = host.up.Send(Now(), WireBytes(*packet)))
        packets_.push({*arrival, ++packets_seen_, std::move(packet), found->second, false});
    }
  }

  void MovePackets() {
    while (!packets_.empty() && packets_.top().at <= Now()) {
      Packet packet = packets_.top();
      packets_.pop();
      Host& host = hosts_[packet.to];
      if (packet.past_middle) {
        // What the host cannot take is lost, as on a wire; TCP sends it again.
        [[maybe_unused]] const ssize_t written =
            write(host.device, packet.bytes->data(), packet.bytes->size());
      } else if (const std::optional<Time> arrival =
                     host.down.Send(packet.at, WireBytes(*packet.bytes))) {
        packet.at = *arrival;
        packet.past_middle = true;
        packets_.push(std::move(packet));
      }
    }
  }

  std::optional<timespec> UntilNext() const {
    if (packets_.empty()) return std::nullopt;
    const int64_t wait = std::max<int64_t>((packets_.top().at - Now()).count(), 0);
    return timespec{wait / 1'000'000'000, wait % 1'000'000'000};
  }

  std::vector<Host> hosts_;
  std::map<uint32_t, size_t> by_address_;
  std::priority_queue<Packet> packets_;  // bounded by the links' queues and delays
  uint64_t packets_seen_ = 0;
  std::vector<char> buffer_ = std::vector<char>(kMaxPacketBytes);
};

absl::Status RunStar(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    return absl::InvalidArgumentError(
        "usage: shoal-test-links NAMESPACE,ADDRESS,MBIT,DELAY_MS,JITTER_MS,LOSS_PERCENT ...");
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const int stop = signalfd(-1, &ends, SFD_CLOEXEC);
  if (stop < 0) return absl::ErrnoToStatus(errno, "signalfd");
  prctl(PR_SET_TIMERSLACK, 1);  // the kernel may else wake it 50 µs late

  std::vector<HostOptions> hosts(arguments.size());
  for (size_t i = 0; i < hosts.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(hosts[i], ReadHost(arguments[i]));
  }
  const bool all_fast = std::ranges::all_of(
      hosts, [](const HostOptions& host) { return host.mbit >= kLargePacketsFromMbit; });
  Star star;
  for (const HostOptions& host : hosts) SHOAL_RETURN_IF_ERROR(star.Add(host, all_fast));
  std::printf("ready\n");
  std::fflush(stdout);
  star.Run(stop);
  star.PrintCounts();
  return absl::OkStatus();
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  const absl::Status status = shoal::RunStar({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "shoal-test-links: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 64 : 1;
}
