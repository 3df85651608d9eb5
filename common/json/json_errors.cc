#include "common/json/json_errors.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/text/nearest_name.h"

namespace shoal {
namespace {

// A text with more errors is of a wrong kind, and more lines would not help.
constexpr size_t kMaxLines = 50;

}  // namespace

void JsonErrors::Add(const std::string& path, const std::string& text) {
  AddUnimplemented(path, text);
  all_unimplemented_ = false;
}

void JsonErrors::Add(const absl::Status& status) {
  lines_.push_back(
      absl::StrCat(source_, source_.empty() ? "" : ": ", std::string(status.message())));
  all_unimplemented_ = all_unimplemented_ && absl::IsUnimplemented(status);
}

void JsonErrors::AddUnimplemented(const std::string& path, const std::string& text) {
  const std::string& source = SourceOf(path);
  lines_.push_back(absl::StrCat(source, source.empty() ? "" : ": ", path, ": ", text));
}

void JsonErrors::NameSource(const std::string& path, const std::string& source) {
  sources_[path] = source;
}

const std::string& JsonErrors::SourceOf(const std::string& path) const {
  for (const auto& [above, source] : sources_) {
    const std::string_view rest =
        std::string_view(path).substr(std::min(path.size(), above.size()));
    if (path.starts_with(above) && (rest.empty() || rest[0] == '.' || rest[0] == '['))
      return source;
  }
  return source_;
}

absl::Status JsonErrors::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  std::string text;
  for (size_t i = 0; i < lines_.size() && i < kMaxLines; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "\n", lines_[i]);
  }
  if (lines_.size() > kMaxLines) {
    absl::StrAppend(&text, "\n", source_, source_.empty() ? "" : ": ", "and ",
                    lines_.size() - kMaxLines, " more errors");
  }
  return all_unimplemented_ ? absl::UnimplementedError(text) : absl::InvalidArgumentError(text);
}

absl::Status WithSource(const std::string& source, const absl::Status& errors) {
  const std::string begin = source + ": ";
  return absl::Status(errors.code(),
                      begin + absl::StrReplaceAll(errors.message(), {{"\n", "\n" + begin}}));
}

std::string SuggestName(const std::string& name, const std::vector<std::string>& known) {
  // The name in older Keras, which many users still write.
  if (name == "lr" && std::find(known.begin(), known.end(), "learning_rate") != known.end())
    return "; Keras calls it \"learning_rate\"";
  const std::string nearest = NearestName(name, known);
  std::string text;
  if (!nearest.empty()) absl::StrAppend(&text, "; did you mean \"", nearest, "\"?");
  absl::StrAppend(&text, nearest.empty() ? "; known: " : " Known: ", absl::StrJoin(known, ", "));
  return text;
}

}  // namespace shoal
