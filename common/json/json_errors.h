#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// Collects what is wrong with one JSON text, so that its author hears of everything at once. Not
// thread-safe.
class JsonErrors {
 public:
  // `source` begins every line ("job.json"); empty: lines begin with the JSON path.
  explicit JsonErrors(std::string source) : source_(std::move(source)) {}

  // What is wrong at `path` and below it comes from elsewhere: its lines begin with this instead.
  void NameSource(const std::string& path, const std::string& source);

  // One error: "SOURCE: PATH: TEXT", for example "job.json: $.batch_size: is -3; must be …".
  void Add(const std::string& path, const std::string& text);
  // An error whose message says itself where it is.
  void Add(const absl::Status& status);
  // The same as the first for something valid that Shoal lacks.
  void AddUnimplemented(const std::string& path, const std::string& text);

  bool empty() const { return lines_.empty(); }

  // OK without errors; else all lines, as kUnimplemented when every one is about something that
  // Shoal lacks, as kInvalidArgument otherwise.
  absl::Status ToStatus() const;

 private:
  const std::string& SourceOf(const std::string& path) const;

  const std::string source_;
  std::map<std::string, std::string> sources_;  // by path, other than source_
  std::vector<std::string> lines_;
  bool all_unimplemented_ = true;
};

// Errors of a text whose source was not known where it was read: each line begins with it now.
absl::Status WithSource(const std::string& source, const absl::Status& errors);

// "; did you mean "worker"? Known: chief, worker": the end of a message about an unknown name.
std::string SuggestName(const std::string& name, const std::vector<std::string>& known);

}  // namespace shoal
