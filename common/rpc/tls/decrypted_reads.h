#pragma once

namespace shoal {

// From now on, ends each TLS connection of a client of this process that sends headers without end
// (FrameScanner), or a message longer than any that a method takes which its role may use. A
// certificate alone does not make a client harmless: both arrive before the server looks at the
// role, the job and the revocations. Thread-safe.
void LimitDecryptedReads();

}  // namespace shoal
