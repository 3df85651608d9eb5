#include "cli/display/live_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "cli/display/number_text.h"

namespace shoal {
namespace {

constexpr int kMaxBar = 30;
constexpr int kMinBar = 8;

// A part of the line. If the line is too wide, the part with the highest rank is dropped first.
struct Part {
  std::string text;
  int rank = 0;  // 0: never dropped
};

std::string Epoch(const proto::StatusReply& status) {
  return "epoch " + std::to_string(std::min(status.epoch() + 1, status.epochs())) + "/" +
         std::to_string(status.epochs());
}

double EpochFraction(const proto::StatusReply& status) {
  const uint64_t begin = status.epoch() * status.steps_per_epoch();
  const uint64_t end = std::min(begin + status.steps_per_epoch(), status.total_steps());
  if (end <= begin || status.steps_done() <= begin) return 0;
  return std::min(1.0, static_cast<double>(status.steps_done() - begin) / (end - begin));
}

// Whether a worker computes, or may do so. If all known workers have left or are lost, the
// remaining time is unknown.
bool AnyoneWorks(const proto::StatusReply& status) {
  bool any_known = false;
  for (const proto::TaskStatus& task : status.tasks()) {
    if (task.type() != "worker") continue;
    if (task.state() == "up" || task.state() == "preparing") return true;
    any_known = true;
  }
  return !any_known;
}

std::string SecondsLeft(const proto::StatusReply& status) {
  if (!AnyoneWorks(status)) return "";
  if (status.steps_per_second() <= 0 || status.steps_done() >= status.total_steps()) return "";
  return FormatDuration((status.total_steps() - status.steps_done()) / status.steps_per_second()) +
         " left";
}

// The reason why no steps run; empty while training goes on normally.
std::string Hindrance(const proto::StatusReply& status) {
  if (status.phase() == "failed") return "failed: " + status.error();
  std::string text;
  if (status.waiting_size() > 0) {
    text = "waiting: " + status.waiting(0);
    if (status.waiting_size() > 1) {
      text += " (and " + std::to_string(status.waiting_size() - 1) + " more)";
    }
  }
  if (status.phase() == "training" || status.phase() == "finished") return text;
  const std::string phase = status.phase() == "claiming" ? "starting" : status.phase();
  return text.empty() ? phase : phase + ", " + text;
}

std::vector<Part> Parts(const proto::StatusReply& status, const std::string& hindrance) {
  std::vector<Part> parts;
  const auto add = [&parts](std::string text, int rank) {
    if (!text.empty()) parts.push_back({std::move(text), rank});
  };
  if (status.total_steps() > 0) {
    add(Epoch(status), 0);
    add("step " + std::to_string(status.steps_done()) + "/" + std::to_string(status.total_steps()),
        1);
  } else if (status.steps_done() > 0) {  // only a worker knows the total
    add("step " + std::to_string(status.steps_done()), 1);
  }
  add(hindrance, 0);
  if (status.total_steps() == 0) return parts;
  if (status.evaluation_batches() > 0) {
    add("evaluating " + std::to_string(status.evaluation_batches_done()) + "/" +
            std::to_string(status.evaluation_batches()),
        5);
  }
  if (status.examples_per_second() > 0) {
    add(FormatCount(status.examples_per_second()) + " examples/s", 4);
  }
  if (status.has_loss()) {
    add("loss " + FormatNumber(status.loss()), 2);
    for (const auto& metric : status.metrics()) {
      add(metric.name() + " " + FormatNumber(metric.value()), 3);
    }
  }
  add(SecondsLeft(status), 2);
  return parts;
}

// The columns of UTF-8 text, one per code point: the live line has no wider characters.
int Columns(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string CutToColumns(const std::string& text, int columns) {
  size_t end = 0;
  for (int used = 0; end < text.size(); ++end) {
    if ((text[end] & 0xc0) != 0x80 && used++ == columns) break;
  }
  return text.substr(0, end);
}

std::string Join(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

std::string Repeat(const char* text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string Bar(double fraction, int columns, const TerminalStyle& style) {
  const int full = static_cast<int>(std::lround(fraction * columns));
  const std::string done = Repeat(style.unicode ? "━" : "=", full);
  const std::string rest = Repeat(style.unicode ? "─" : "-", columns - full);
  if (!style.color) return done + rest;
  return "\x1b[32m" + done + "\x1b[0m\x1b[2m" + rest + "\x1b[0m";
}

}  // namespace

std::string FormatLiveLine(const proto::StatusReply& status, const TerminalStyle& style) {
  const int width = style.live_columns();
  std::vector<Part> parts = Parts(status, Hindrance(status));
  const bool with_bar = status.total_steps() > 0;
  while (Columns(Join(parts)) > width) {
    const auto least = std::max_element(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
    if (least->rank == 0) return CutToColumns(Join(parts), width);
    parts.erase(least);
  }
  const int room = width - Columns(Join(parts)) - 2;
  if (with_bar && room >= kMinBar) {
    const std::string bar = Bar(EpochFraction(status), std::min(room, kMaxBar), style);
    parts.insert(parts.begin() + 1, {bar, 0});
  }
  return Join(parts);
}

std::string FormatProgressLine(const proto::StatusReply& status) {
  return Join(Parts(status, Hindrance(status)));
}

std::string FormatProgress(const proto::StatusReply& status) { return Join(Parts(status, "")); }

std::string FormatCheckpointError(const proto::CheckpointStatus& checkpoint) {
  const std::string& good = checkpoint.directory();
  return "the last checkpoint failed: " + checkpoint.last_error() + "; retrying" +
         (good.empty() ? "" : ". The newest is " + good);
}

std::string FormatEpochLine(const proto::EpochResult& epoch, uint64_t epochs) {
  std::string line = "epoch " + std::to_string(epoch.epoch() + 1) + "/" + std::to_string(epochs) +
                     ": loss " + FormatNumber(epoch.loss());
  for (const auto& metric : epoch.metrics()) {
    line += ", " + metric.name() + " " + FormatNumber(metric.value());
  }
  if (epoch.has_test_loss()) line += ", test loss " + FormatNumber(epoch.test_loss());
  for (const auto& metric : epoch.test_metrics()) {
    line += ", test " + metric.name() + " " + FormatNumber(metric.value());
  }
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), ", %.1f s, ", epoch.seconds());
  return line + seconds + FormatCount(epoch.examples_per_second()) + " examples/s";
}

}  // namespace shoal
