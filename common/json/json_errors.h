#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// Collects the errors of one JSON text. Its author then gets all of them at once. Not thread-safe.
class JsonErrors {
 public:
  // `source` begins every line ("job.json"); empty: lines begin with the JSON path.
  explicit JsonErrors(std::string source) : source_(std::move(source)) {}

  // Makes errors at `path` and below it begin with `source` instead.
  void NameSource(const std::string& path, const std::string& source);

  // Adds an error: "SOURCE: PATH: TEXT", for example "job.json: $.batch_size: is -3; must be …".
  void Add(const std::string& path, const std::string& text);
  // Adds an error whose message already contains its place.
  void Add(const absl::Status& status);
  // As the first Add(), for valid input that Shoal does not support.
  void AddUnimplemented(const std::string& path, const std::string& text);

  bool empty() const { return lines_.empty(); }

  // Returns OK if there are no errors, else all lines. The code is kUnimplemented if Shoal lacks
  // support for all of them, else kInvalidArgument.
  absl::Status ToStatus() const;

 private:
  const std::string& SourceOf(const std::string& path) const;

  const std::string source_;
  std::map<std::string, std::string> sources_;  // by path, other than source_
  std::vector<std::string> lines_;
  bool all_unimplemented_ = true;
};

// Puts `source` before each line of `errors`. For errors of a reader that does not know its source.
absl::Status WithSource(const std::string& source, const absl::Status& errors);

// "; did you mean "worker"? Known: chief, worker": the end of a message about an unknown name.
std::string SuggestName(const std::string& name, const std::vector<std::string>& known);

}  // namespace shoal
