#include "common/rpc/grpc/name_lookups.h"

#include <dlfcn.h>
#include <netdb.h>

#include <set>
#include <string>

#include "common/base/mutex.h"

namespace shoal {
namespace {

// All lookups of the process, because it has one getaddrinfo.
struct Lookups {
  Mutex mutex;
  std::multiset<std::string> hosts ABSL_GUARDED_BY(mutex);
};

Lookups& Current() {
  static auto* const lookups = new Lookups;
  return *lookups;
}

}  // namespace

bool IsLookedUp(const std::string& host) {
  Lookups& lookups = Current();
  MutexLock lock(&lookups.mutex);
  return lookups.hosts.contains(host);
}

NameLookup::NameLookup(const std::string& host) : host_(host) {
  Lookups& lookups = Current();
  MutexLock lock(&lookups.mutex);
  lookups.hosts.insert(host_);
}

NameLookup::~NameLookup() {
  Lookups& lookups = Current();
  MutexLock lock(&lookups.mutex);
  lookups.hosts.erase(lookups.hosts.find(host_));
}

std::string HostOf(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with("[") && host.ends_with("]") ? host.substr(1, host.size() - 2) : host;
}

}  // namespace shoal

// Replaces the system's getaddrinfo. gRPC, a shared library, calls the program's getaddrinfo, which
// CMakeLists.txt exports.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int(const char*, const char*, const addrinfo*, addrinfo**);
  static auto* const next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const shoal::NameLookup lookup(node == nullptr ? "" : node);
  return next(node, service, hints, found);
}
