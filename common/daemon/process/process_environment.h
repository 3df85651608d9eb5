#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// These change the process as a whole. Call them first thing in main(), before any thread is
// started.

// Opens /dev/null in the place of standard input, output and error where they are closed: the next
// file that is opened would get their number, and what is printed would land in it. Printing on a
// standard output that was closed remains an error.
void OpenStandardDescriptors();

// Removes the proxy variables (http_proxy and its like) from the environment: gRPC obeys them, and
// a proxy that is meant for the web answers cluster traffic with errors that name no cause.
void ClearProxyVariables();

// Has gRPC ask the system for the addresses of hosts, as getaddrinfo does, where the environment
// does not say otherwise (GRPC_DNS_RESOLVER). Its own resolver asks the name servers for what
// /etc/hosts has, and waits for those that do not answer.
void UseSystemNames();

// Makes OpenMP's threads sleep while they have no work instead of spinning, which stalls every
// other process on the machine by an order of magnitude. libgomp reads OMP_WAIT_POLICY when it is
// loaded, before main(): where the variable is not set, this sets it and starts the program again
// in the same process (same id, same arguments). Returns when the variable is set, or with an error
// when the program could not be started again, which is worth a warning only.
absl::Status UsePassiveOpenMpThreads(char** argv);

// kFailedPrecondition where this process may have too few files open for a network: gRPC would
// abort it.
absl::Status CheckFileLimit();

// Raises the limit of open files (RLIMIT_NOFILE) to what this process may have: the usual 1024 is
// there for programs that know no larger descriptor.
void RaiseFileLimit();

// Has the kernel kill this process when the thread that started it ends, however it ends, so that
// the processes of a local cluster never outlive `shoal train`. By SIGKILL: a signal that asks
// could be waited out. `parent_pid` is the process that should be the parent; where it is gone
// already this process exits at once, with kExitDrained.
void ExitWithParent(int parent_pid);

}  // namespace shoal
