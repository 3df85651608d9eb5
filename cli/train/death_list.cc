#include "cli/train/death_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

bool SameTask(const TaskId& a, const TaskId& b) { return a.type == b.type && a.index == b.index; }

}  // namespace

void DeathList::Add(const TaskId& task, std::string description, std::string sentence) {
  auto known = std::find_if(tasks_.begin(), tasks_.end(),
                            [&](const Task& each) { return SameTask(each.id, task); });
  if (known == tasks_.end()) known = tasks_.insert(known, {task, std::move(description), 0});
  ++known->deaths;
  newest_.push_back({task, std::move(sentence)});
  if (newest_.size() > kMaxListed) newest_.pop_front();
}

void DeathList::Remove(const TaskId& task) {
  std::erase_if(tasks_, [&](const Task& each) { return SameTask(each.id, task); });
  std::erase_if(newest_, [&](const Death& each) { return SameTask(each.task, task); });
}

const std::string& DeathList::FirstOf(const TaskId& task) const {
  return std::find_if(tasks_.begin(), tasks_.end(),
                      [&](const Task& each) { return SameTask(each.id, task); })
      ->first_description;
}

const std::string& DeathList::FirstOf(TaskType type) const {
  return std::find_if(tasks_.begin(), tasks_.end(),
                      [&](const Task& each) { return each.id.type == type; })
      ->first_description;
}

std::string DeathList::ToString() const {
  uint64_t deaths = 0;
  for (const Task& task : tasks_) deaths += task.deaths;
  if (deaths < 2) return "";
  std::string text = "\nWhat failed, oldest first:";
  if (deaths > newest_.size()) {
    absl::StrAppend(&text, "\n  ", deaths - newest_.size(), " deaths that are not listed");
  }
  for (const Death& death : newest_) absl::StrAppend(&text, "\n  ", death.sentence);
  return text;
}

}  // namespace shoal
