#pragma once

namespace shoal {

// Limits what clients send to this process under TLS, from this call on. Ends a connection with
// headers without end (FrameScanner), or with a message that is longer than its client's role may
// send to any method of this server. gRPC holds both in memory before the server looks at the role,
// the job and the revocations. Any thread may call it, any number of times.
void LimitDecryptedReads();

}  // namespace shoal
