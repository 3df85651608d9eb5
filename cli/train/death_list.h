#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/cluster/cluster_spec.h"

namespace shoal {

// The deaths of tasks, for the last lines of a failed training. Its size is bounded: it keeps the
// description of each task's first death, a sentence for each of the newest deaths, and a count.
// Plain state; not thread-safe.
class DeathList {
 public:
  static constexpr size_t kMaxListed = 20;

  // `description` has many lines, `sentence` one.
  void Add(const TaskId& task, std::string description, std::string sentence);
  // Removes all deaths of a task.
  void Remove(const TaskId& task);

  // Returns the description of the task's first death, or of the first death of any task of the
  // type. Requires that there was one.
  const std::string& FirstOf(const TaskId& task) const;
  const std::string& FirstOf(TaskType type) const;
  // Returns the sentences, oldest first, each on a line of its own. Begins with a newline; empty if
  // there was at most one death.
  std::string ToString() const;

 private:
  struct Task {
    TaskId id;
    std::string first_description;
    uint64_t deaths = 0;
  };
  struct Death {
    TaskId task;
    std::string sentence;
  };

  std::vector<Task> tasks_;   // in the order of their first deaths
  std::deque<Death> newest_;  // at most kMaxListed
};

}  // namespace shoal
