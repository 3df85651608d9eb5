#include "worker/input/formats/csv_reader.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

absl::Status CsvReader::Fill() {
  buffer_.resize(kBufferBytes);
  SHOAL_ASSIGN_OR_RETURN(const size_t count, read_(buffer_));
  buffer_.resize(count);
  position_ = 0;
  if (!begun_ && std::string_view(buffer_.data(), count).starts_with(kByteOrderMark)) {
    position_ = kByteOrderMark.size();
  }
  begun_ = true;
  return absl::OkStatus();
}

absl::StatusOr<int> CsvReader::Get() {
  if (position_ == buffer_.size()) {
    SHOAL_RETURN_IF_ERROR(Fill());
    if (position_ == buffer_.size()) return -1;
  }
  return static_cast<unsigned char>(buffer_[position_++]);
}

absl::Status CsvReader::Error(const std::string& what) const {
  return absl::DataLossError(absl::StrCat("line ", line_, ": ", what));
}

absl::StatusOr<bool> CsvReader::Next(std::vector<std::string>* fields) {
  enum class In { kBegin, kPlain, kQuotes, kAfterQuote } in = In::kBegin;
  fields->clear();
  std::string field;
  size_t bytes = 0;
  row_line_ = line_;
  for (;;) {
    SHOAL_ASSIGN_OR_RETURN(const int byte, Get());
    if (++bytes > kMaxCsvRowBytes) {
      return Error(absl::StrCat("a row of more than ", kMaxCsvRowBytes, " bytes"));
    }
    if (in == In::kQuotes) {
      if (byte < 0) {
        return Error(
            absl::StrCat("the file ends within quotes; the row began on line ", row_line_));
      }
      if (byte == '\n') ++line_;
      if (byte == '"') {
        in = In::kAfterQuote;
      } else {
        field.push_back(static_cast<char>(byte));
      }
      continue;
    }
    if (byte == '"') {
      if (in == In::kPlain) return Error("a quote within a field that does not begin with one");
      if (in == In::kAfterQuote) field.push_back('"');
      in = In::kQuotes;
    } else if (byte == '\r') {
      SHOAL_ASSIGN_OR_RETURN(const int next, Get());
      if (next != '\n') return Error("a carriage return that ends no line");
      --position_;
    } else if (byte == delimiter_ || byte == '\n' || byte < 0) {
      const bool empty_line = in == In::kBegin && fields->empty();
      if (byte == '\n') ++line_;
      if (empty_line && byte != delimiter_) {
        if (byte < 0) return false;
        row_line_ = line_;
        bytes = 0;
        continue;
      }
      if (fields->size() == kMaxCsvFields) {
        return Error(absl::StrCat("more than ", kMaxCsvFields, " fields"));
      }
      fields->push_back(std::move(field));
      field.clear();
      in = In::kBegin;
      if (byte != delimiter_) return true;
    } else {
      if (in == In::kAfterQuote) return Error("text after the quote that ends a field");
      in = In::kPlain;
      field.push_back(static_cast<char>(byte));
    }
  }
}

}  // namespace shoal
