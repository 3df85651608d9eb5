#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// These functions are about the whole process. Call them first in main(), before any thread starts.

// Opens /dev/null as standard input, output or error if it is closed. Otherwise the next opened
// file gets its number and receives the output. Writing to a closed standard output remains an
// error.
void OpenStandardDescriptors();

// Removes the proxy variables (http_proxy and similar) from the environment. gRPC obeys them, and a
// web proxy rejects cluster traffic with unclear errors.
void ClearProxyVariables();

// Makes gRPC look up hosts by getaddrinfo, unless GRPC_DNS_RESOLVER is set. gRPC's own resolver
// ignores /etc/hosts and waits for dead name servers.
void UseSystemNames();

// Keeps OpenSSL usable until the process has ended. Otherwise exit() frees it while gRPC's threads
// still end their TLS connections, and the process crashes.
void KeepOpenSslUntilExit();

// Makes OpenMP's threads sleep while they have no work. Spinning threads slow all other processes
// on the machine by an order of magnitude. libgomp reads OMP_WAIT_POLICY when it is loaded, before
// main(). If the variable is not set, sets it and executes the program again (same pid, same
// arguments). Returns OK if the variable is set, else an error, which deserves only a warning.
absl::Status UsePassiveOpenMpThreads(char** argv);

// Returns kFailedPrecondition if the limit of open files is too low for a network: gRPC would
// abort.
absl::Status CheckFileLimit();

// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard limit. The usual soft limit,
// 1024, is for programs that cannot use larger descriptors.
void RaiseFileLimit();

// Makes the kernel kill this process (SIGKILL) when the thread that started it ends. The processes
// of a local cluster thus never outlive `shoal train`. A milder signal would let a process take its
// time. Exits at once with kExitDrained if `parent_pid` is not the parent any more.
void ExitWithParent(int parent_pid);

}  // namespace shoal
