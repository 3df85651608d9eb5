#include "tests/simulation/workload/fault.h"

namespace shoal {

const char* NameOf(Fault::Kind kind) {
  using Kind = Fault::Kind;
  switch (kind) {
    case Kind::kKill:
      return "kill";
    case Kind::kKillAfterCallbacks:
      return "kill after callbacks";
    case Kind::kKillAtFileOperation:
      return "kill at file operation";
    case Kind::kFreeze:
      return "freeze";
    case Kind::kReplace:
      return "replace";
    case Kind::kSecond:
      return "second";
    case Kind::kBreakStreams:
      return "break streams";
    case Kind::kCut:
      return "cut";
    case Kind::kCutBoth:
      return "cut both";
    case Kind::kSlowLinks:
      return "slow links";
    case Kind::kSlowReader:
      return "slow reader";
    case Kind::kDrain:
      return "drain";
    case Kind::kDrainAll:
      return "drain all";
    case Kind::kPowerLoss:
      return "power loss";
    case Kind::kDiskFull:
      return "disk full";
    case Kind::kDiskReadOnly:
      return "disk read-only";
    case Kind::kDiskSlow:
      return "disk slow";
    case Kind::kDamage:
      return "damage";
    case Kind::kRestartAll:
      return "restart all";
    case Kind::kChangeJob:
      return "change job";
    case Kind::kNewCertificates:
      return "new certificates";
  }
  return "";
}

}  // namespace shoal
