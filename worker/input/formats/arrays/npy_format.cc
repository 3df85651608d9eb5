#include "worker/input/formats/arrays/npy_format.h"

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// NumPy's common name of a type: " (float16)" for '<f2'; empty if there is none.
std::string NumPyName(const std::string& descr) {
  struct Kind {
    char letter;
    const char* name;
    bool has_bits;
  };
  constexpr Kind kKinds[] = {
      {'b', "bool", false},       {'u', "uint", true},        {'i', "int", true},
      {'f', "float", true},       {'c', "complex", true},     {'O', "object", false},
      {'S', "bytes", false},      {'U', "str", false},        {'V', "void", false},
      {'M', "datetime64", false}, {'m', "timedelta64", false}};
  if (descr.size() < 2) return "";
  int bytes = 0;
  const bool sized = absl::SimpleAtoi(descr.substr(2), &bytes) && bytes > 0 && bytes <= 32;
  for (const Kind& kind : kKinds) {
    if (kind.letter != descr[1]) continue;
    if (!kind.has_bits) return absl::StrCat(" (", kind.name, ")");
    return sized ? absl::StrCat(" (", kind.name, 8 * bytes, ")") : "";
  }
  return "";
}

// Reads the dict literal of a header. One object reads one header.
class HeaderParser {
 public:
  // Parses head[begin, end).
  HeaderParser(std::string_view head, size_t begin, size_t end)
      : head_(head.substr(0, end)), position_(begin) {}

  absl::StatusOr<ArrayHeader> Parse() {
    SHOAL_RETURN_IF_ERROR(Expect('{'));
    while (!Accept('}')) {
      SHOAL_RETURN_IF_ERROR(ParseEntry());
      if (Accept(',')) continue;
      SHOAL_RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipSpace();
    if (position_ != head_.size()) return Unexpected("the header's end");
    if (!has_type_ || !has_order_ || !has_shape_) {
      return Unexpected("all of 'descr', 'fortran_order' and 'shape' before the header's end");
    }
    header_.data_offset = head_.size();
    return CheckedArrayHeader(std::move(header_), shape_offset_);
  }

 private:
  absl::Status ParseEntry() {
    SkipSpace();
    const size_t key_offset = position_;
    SHOAL_ASSIGN_OR_RETURN(const std::string key, ParseString());
    SHOAL_RETURN_IF_ERROR(Expect(':'));
    SkipSpace();
    if (key == "descr" && !has_type_) return ParseType();
    if (key == "fortran_order" && !has_order_) return ParseOrder();
    if (key == "shape" && !has_shape_) return ParseShape();
    position_ = key_offset;
    return Unexpected("'descr', 'fortran_order' and 'shape', once each");
  }

  absl::Status ParseType() {
    const size_t offset = position_;
    std::optional<ElementType> type;
    std::string descr;
    const bool records = Peek() == '[';  // a list of fields
    if (!records) {
      SHOAL_ASSIGN_OR_RETURN(descr, ParseString());
    }
    if (descr.size() == 3) type = TypeOf(descr.substr(1));
    const bool little = !descr.empty() && descr[0] == '<';
    const bool big = !descr.empty() && descr[0] == '>';
    const bool single = !descr.empty() && descr[0] == '|' && type && ElementBytes(*type) == 1;
    if (!type || !(little || big || single)) {
      return absl::UnimplementedError(absl::StrCat(
          "at byte ", offset, ": element type ",
          records ? "of several fields"
                  : absl::StrCat("'", Printable(descr, 24), "'", NumPyName(descr)),
          "; expected one of '|u1' '|i1' '<i2' '<i4' '<i8' '<f4' '<f8' (array.astype('<f4') makes "
          "one)"));
    }
    header_.format = {.type = *type, .order = big ? std::endian::big : std::endian::little};
    has_type_ = true;
    return absl::OkStatus();
  }

  static std::optional<ElementType> TypeOf(const std::string& name) {
    if (name == "u1") return ElementType::kU8;
    if (name == "i1") return ElementType::kI8;
    if (name == "i2") return ElementType::kI16;
    if (name == "i4") return ElementType::kI32;
    if (name == "i8") return ElementType::kI64;
    if (name == "f4") return ElementType::kF32;
    if (name == "f8") return ElementType::kF64;
    return std::nullopt;
  }

  absl::Status ParseOrder() {
    if (AcceptWord("True")) {
      return absl::UnimplementedError(absl::StrCat(
          "at byte ", position_ - 4,
          ": the array is in Fortran order; expected C order (numpy.ascontiguousarray(array) "
          "makes one)"));
    }
    if (!AcceptWord("False")) return Unexpected("True or False");
    has_order_ = true;
    return absl::OkStatus();
  }

  absl::Status ParseShape() {
    shape_offset_ = position_;
    SHOAL_RETURN_IF_ERROR(Expect('('));
    while (!Accept(')')) {
      SHOAL_ASSIGN_OR_RETURN(const int64_t extent, ParseExtent());
      header_.shape.push_back(extent);
      if (Accept(',')) continue;
      SHOAL_RETURN_IF_ERROR(Expect(')'));
      break;
    }
    has_shape_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ParseExtent() {
    SkipSpace();
    const size_t offset = position_;
    int64_t extent = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      if (__builtin_mul_overflow(extent, int64_t{10}, &extent) ||
          __builtin_add_overflow(extent, int64_t{Peek() - '0'}, &extent)) {
        position_ = offset;
        return Unexpected("an extent below 2^63");
      }
      ++position_;
    }
    if (position_ == offset) return Unexpected("an extent");
    return extent;
  }

  absl::StatusOr<std::string> ParseString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Unexpected("a quoted string");
    const size_t end = head_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return Unexpected("a string that ends");
    std::string text(head_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return text;
  }

  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\n') ++position_;
  }
  // Returns the next character, '\0' at the end.
  char Peek() const { return position_ < head_.size() ? head_[position_] : '\0'; }
  bool Accept(char c) {
    SkipSpace();
    if (Peek() != c || position_ == head_.size()) return false;
    ++position_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    if (head_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  absl::Status Expect(char c) {
    return Accept(c) ? absl::OkStatus() : Unexpected(absl::StrCat("'", std::string(1, c), "'"));
  }
  absl::Status Unexpected(const std::string& expected) const {
    return absl::DataLossError(absl::StrCat(Found(), "; expected ", expected));
  }
  std::string Found() const {
    return absl::StrCat("at byte ", position_,
                        ", in the NPY header: ", Printable(head_.substr(position_, 24), 24));
  }

  const std::string_view head_;  // up to the header's end
  size_t position_;
  ArrayHeader header_;
  size_t shape_offset_ = 0;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

bool IsNpy(std::string_view head) { return head.substr(0, kMagic.size()) == kMagic; }

absl::StatusOr<ArrayHeader> ParseNpyHeader(std::string_view head) {
  const auto byte = [head](size_t i) { return static_cast<uint8_t>(head[i]); };
  const size_t major = head.size() > 6 ? byte(6) : 1;
  if (major < 1 || major > 3) {
    return absl::DataLossError(
        absl::StrCat("at byte 6: NPY version ", major, "; expected 1, 2 or 3"));
  }
  const size_t begin = major == 1 ? 10 : 12;
  if (head.size() < begin) {
    return absl::DataLossError(absl::StrCat("ends at byte ", head.size(), " in the ", begin,
                                            " bytes that begin an NPY file of version ", major));
  }
  uint64_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= uint64_t{byte(10)} << 16 | uint64_t{byte(11)} << 24;
  if (length > kMaxHeaderBytes - begin) {
    return absl::DataLossError(absl::StrCat("at byte 8: NPY header of ", length,
                                            " bytes; expected at most ", kMaxHeaderBytes - begin));
  }
  if (begin + length > head.size()) {
    return absl::DataLossError(absl::StrCat("ends at byte ", head.size(),
                                            " in the NPY header; expected it to end at byte ",
                                            begin + length));
  }
  return HeaderParser(head, begin, begin + length).Parse();
}

}  // namespace shoal
