#include "ps/services/ps_state.h"

#include "common/base/version.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

void PsState::FillHello(proto::ServerHello* hello) const {
  hello->set_incarnation(incarnation);
  hello->set_promised_term(promised_term);
  hello->set_timeline(timeline_term());
  hello->set_version(kVersion);
  hello->set_index(index);
}

}  // namespace shoal
