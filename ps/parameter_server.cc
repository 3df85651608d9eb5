#include "ps/parameter_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"

namespace shoal {

ParameterServer::ParameterServer(Options options)
    : state_{.index = options.index,
             .incarnation = options.incarnation,
             .loop = options.loop,
             .files = options.files},
      control_(std::move(options.control), &state_),
      exchange_(&state_) {}

absl::StatusOr<StreamCallbacks> ParameterServer::Accept(const std::string& method,
                                                        std::unique_ptr<Stream> stream) {
  if (method == kExchangeMethod) return exchange_.Accept(std::move(stream));
  if (method == kControlMethod) return control_.Accept(std::move(stream));
  return absl::UnimplementedError(
      absl::StrCat(method, ": a ps serves ", kExchangeMethod, " and ", kControlMethod));
}

void ParameterServer::Leave(Time grace) { control_.Leave(grace); }

absl::Status ParameterServer::CheckReady() const { return control_.CheckReady(); }

void ParameterServer::Collect(MetricSamples* out) const {
  out->Add("shoal_ps_term", TermNumber(promised_term()));
  out->Add("shoal_ps_timeline", TermNumber(timeline()));
  out->Add("shoal_ps_coordinator_silence_seconds", ToSeconds(control_.silence()));
  const VariableStore* const store = variables();
  out->Add("shoal_ps_chunks", store == nullptr ? 0 : store->chunk_count());
  const size_t early = store == nullptr ? 0 : store->early_gradients();
  const size_t before = store == nullptr ? 0 : store->versions_before();
  out->Add("shoal_ps_early_gradients", static_cast<double>(early));
  out->Add("shoal_ps_versions_before", static_cast<double>(before));
  out->Add("shoal_ps_streams", static_cast<double>(control_.stream_count()), {"control"});
  out->Add("shoal_ps_streams", static_cast<double>(exchange_.stream_count()), {"exchange"});
  state_.stats.Collect(out);
}

}  // namespace shoal
