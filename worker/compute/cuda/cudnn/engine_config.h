#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/model/compute_dtype.h"

namespace shoal::cuda {

// Identifies a way of computing a graph: one of cuDNN's engines and its settings. The numbers are
// cuDNN's own; only the same version understands them.
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

// Formats a config as "62 2=0 13=1". ParseEngineConfig is the inverse; it returns nothing for any
// other text.
std::string EngineConfigText(const EngineConfig& config);
std::optional<EngineConfig> ParseEngineConfig(std::string_view text);

// cuDNN's notes about an engine.
struct EngineNotes {
  bool tensor_cores = false;  // reads only 19 bits of a float32 (TF32)
  bool converts_inputs_down = false;
  bool adds_in_less_than_float32 = false;
  bool nondeterministic = false;
};

// A job's demands on convolutions.
struct ConvolutionDemands {
  bool tf32 = false;           // float32 may be read as TF32
  bool deterministic = false;  // the same bits in each run: speed must not decide
  // Rejects engines with wrong results, even without measuring for speed. This takes a trial, which
  // is not worth it for an evaluation.
  bool checked = false;
  int64_t workspace_limit_bytes = int64_t{1} << 30;
};

// Whether an engine with these notes may compute on tensors of `type`. Sums are always in float32.
bool MayCompute(const EngineNotes& notes, ComputeDtype type, const ConvolutionDemands& demands);

// Returns the error if all of cuDNN's engines for a graph have failed. The first failure of the
// device or the installation wins, because other ways of computing would fail, too. Otherwise
// kUnimplemented with the text of the last failure; the caller may then compute it in another way.
absl::Status NoEngine(const std::string& what, const std::vector<absl::Status>& failures);

}  // namespace shoal::cuda
