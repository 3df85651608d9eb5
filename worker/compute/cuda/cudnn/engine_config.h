#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/model/compute_dtype.h"

namespace shoal::cuda {

// A choice among the ways in which cuDNN computes a graph: one of its engines, and how that is set.
// The numbers are cuDNN's own and mean something to one version of it alone.
struct EngineConfig {
  struct Knob {
    int64_t type;
    int64_t value;
    bool operator==(const Knob&) const = default;
  };
  int64_t engine = 0;
  std::vector<Knob> knobs = {};
  bool operator==(const EngineConfig&) const = default;
};

// "62 2=0 13=1", and back; nothing of another text.
std::string EngineConfigText(const EngineConfig& config);
std::optional<EngineConfig> ParseEngineConfig(std::string_view text);

// What cuDNN says about how an engine computes.
struct EngineNotes {
  bool tensor_cores = false;  // of float32 it then reads 19 bits alone (TF32)
  bool converts_inputs_down = false;
  bool adds_in_less_than_float32 = false;
  bool nondeterministic = false;
};

// What a job asks of convolutions.
struct ConvolutionDemands {
  bool tf32 = false;           // float32 may be read as TF32
  bool deterministic = false;  // the same bits in each run: what is fastest today is no reason
  // What computes something else is not taken, where it is not to be measured, too. It takes a
  // try, which an evaluation is not worth.
  bool checked = false;
  int64_t workspace_limit_bytes = int64_t{1} << 30;
};

// Whether an engine with these notes may compute on tensors of `type`. Sums are in float32 always.
bool MayCompute(const EngineNotes& notes, ComputeDtype type, const ConvolutionDemands& demands);

// What it comes to that no engine does of those that cuDNN names, of which each has failed:
// kUnimplemented, for who computes it otherwise, with the last failure's text, or the first failure
// that is one of the device or of the installation, which others would meet as well.
absl::Status NoEngine(const std::string& what, const std::vector<absl::Status>& failures);

}  // namespace shoal::cuda
