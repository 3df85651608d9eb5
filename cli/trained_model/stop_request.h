#pragma once

namespace shoal {

// For a command that works in a loop of its own and has something to leave in order: while this
// lives, a stop signal is noted and does nothing else, and a second one ends the process as if
// there were no such thing. One at a time.
class StopRequest {
 public:
  StopRequest();
  // Signals act as before.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Since this was made.
  bool asked() const;
};

}  // namespace shoal
