#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/files/private_copy.h"

namespace shoal {

// Max bytes of a row and max fields in it. They keep any input from exhausting memory.
inline constexpr size_t kMaxCsvRowBytes = 16 << 20;
inline constexpr size_t kMaxCsvFields = 1 << 20;

// Reads comma-separated values row by row (RFC 4180):
//   file   = row ((CR LF | LF) row)* [CR LF | LF]
//   row    = field (delimiter field)*
//   field  = plain | '"' (any byte but '"' | '""')* '"'
//   plain  = bytes without delimiter, CR, LF and '"'
// Skips empty lines, and a byte order mark at the beginning. Not thread-safe.
class CsvReader {
 public:
  CsvReader(ReadContent read, char delimiter) : read_(std::move(read)), delimiter_(delimiter) {}

  // Reads the next row into `fields`. Returns false at the end. Errors name the line.
  absl::StatusOr<bool> Next(std::vector<std::string>* fields);
  // The number of the line, from 1, on which the last row began.
  uint64_t line() const { return row_line_; }

 private:
  // Returns the next byte, or -1 at the end.
  absl::StatusOr<int> Get();
  absl::Status Fill();
  absl::Status Error(const std::string& what) const;

  const ReadContent read_;
  const char delimiter_;
  std::vector<char> buffer_;
  size_t position_ = 0;
  bool begun_ = false;
  uint64_t line_ = 1;
  uint64_t row_line_ = 1;
};

}  // namespace shoal
