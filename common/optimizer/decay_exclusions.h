#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/json/keras_options.h"

namespace re2 {
class RE2;
}

namespace shoal {

// Which variables keep out of weight decay, as Keras's exclude_from_weight_decay() has it
// (keras/src/optimizers/base_optimizer.py). An entry with a "/" is the name of one variable, its
// whole path: Keras's var_list. Any other is a regular expression that is searched for in the last
// part of a variable's path, which Keras calls its name ("bias"): Keras's var_names. Immutable,
// thread-safe.
class DecayExclusions {
 public:
  // Reads the option "exclude_from_weight_decay". Where nothing decays there are none: they change
  // nothing then.
  DecayExclusions(KerasOptions& options, bool decays);
  DecayExclusions(DecayExclusions&&) noexcept;
  ~DecayExclusions();

  // Whether a variable of this name ("conv2d/bias") is excluded.
  bool Excludes(const std::string& variable) const;

  // kInvalidArgument: an entry excludes none of these, the names of all variables of a model.
  absl::Status Check(const std::vector<std::string>& variables) const;

 private:
  struct Entry {
    std::string text;
    std::unique_ptr<const re2::RE2> pattern;  // null: a variable's path

    bool Matches(const std::string& variable) const;
  };
  void Read(const nlohmann::json& list, JsonObject& given);
  void ReadEntry(const nlohmann::json& value, const std::string& path, JsonErrors* errors);

  std::string path_;            // of the option, for errors
  std::vector<Entry> entries_;  // sorted by their texts, each once
};

}  // namespace shoal
