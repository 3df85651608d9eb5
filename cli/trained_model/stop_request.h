#pragma once

namespace shoal {

// Lets a command with its own loop clean up before it stops. While this lives, the first stop
// signal is only recorded; a second one ends the process as usual. At most one instance at a time.
class StopRequest {
 public:
  StopRequest();
  // Restores the default action of the signals.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Returns whether a stop signal has come since construction.
  bool requested() const;
};

}  // namespace shoal
