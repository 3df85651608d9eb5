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

// The variables without weight decay, like Keras's exclude_from_weight_decay()
// (keras/src/optimizers/base_optimizer.py). An entry with a "/" is the whole path of one variable:
// Keras's var_list. Any other entry is a regular expression. It is searched for in the last part of
// a variable's path, which Keras calls its name ("bias"): Keras's var_names. Immutable,
// thread-safe.
class DecayExclusions {
 public:
  // Reads the option "exclude_from_weight_decay". Without weight decay it keeps no entries, because
  // they would have no effect.
  DecayExclusions(KerasOptions& options, bool decays);
  DecayExclusions(DecayExclusions&&) noexcept;
  ~DecayExclusions();

  // Whether the variable with this name ("conv2d/bias") is excluded.
  bool Excludes(const std::string& variable) const;

  // kInvalidArgument if an entry excludes none of `variables`, the names of all variables of a
  // model.
  absl::Status Check(const std::vector<std::string>& variables) const;

 private:
  struct Entry {
    std::string text;
    std::unique_ptr<const re2::RE2> pattern;  // null: the entry is a path

    bool Matches(const std::string& variable) const;
  };
  void Read(const nlohmann::json& list, JsonObject& given);
  void ReadEntry(const nlohmann::json& value, const std::string& path, JsonErrors* errors);

  std::string path_;            // of the option, for errors
  std::vector<Entry> entries_;  // sorted by text, without duplicates
};

}  // namespace shoal
