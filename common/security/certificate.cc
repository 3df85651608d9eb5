#include "common/security/certificate.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/security/openssl_handles.h"

namespace shoal {
namespace {

constexpr uint32_t kAbsent = UINT32_MAX;

// An X509-SVID with a broken rule. `rule` says what is wrong and what would be right.
absl::Status NoSvid(X509* certificate, const std::string& rule) {
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate with the serial ", SerialOf(certificate), " ", rule));
}

absl::Status CheckUsages(X509* certificate) {
  if ((X509_get_extension_flags(certificate) & EXFLAG_INVALID) != 0)
    return NoSvid(certificate, "has a damaged or repeated extension");
  if (IsAuthority(certificate)) {
    return NoSvid(certificate,
                  "is of a certificate authority; a task needs one that the authority has issued");
  }
  const uint32_t usage = X509_get_key_usage(certificate);
  const int place = X509_get_ext_by_NID(certificate, NID_key_usage, -1);
  const bool critical =
      place >= 0 && X509_EXTENSION_get_critical(X509_get_ext(certificate, place)) != 0;
  if (usage == kAbsent || !critical || (usage & KU_DIGITAL_SIGNATURE) == 0) {
    return NoSvid(certificate, "must have the critical key usage digitalSignature");
  }
  if ((usage & (KU_KEY_CERT_SIGN | KU_CRL_SIGN)) != 0) {
    return NoSvid(certificate, "must not have the key usages keyCertSign and cRLSign");
  }
  const uint32_t extended = X509_get_extended_key_usage(certificate);
  constexpr uint32_t kBoth = XKU_SSL_SERVER | XKU_SSL_CLIENT;
  if (extended != kAbsent && (extended & kBoth) != kBoth) {
    return NoSvid(certificate, "must have the extended key usages serverAuth and clientAuth");
  }
  return absl::OkStatus();
}

absl::StatusOr<Certificate> ReadSvid(X509* certificate) {
  SHOAL_RETURN_IF_ERROR(CheckUsages(certificate));
  const std::vector<std::string> uris = UrisOf(certificate);
  if (uris.size() != 1) {
    return NoSvid(certificate,
                  absl::StrCat("has ", uris.size(),
                               " URIs as alternative names; it must have exactly one, its SPIFFE "
                               "identity"));
  }
  const absl::StatusOr<Identity> identity = ParseIdentity(uris[0]);
  if (!identity.ok())
    return NoSvid(certificate, absl::StrCat("is not of Shoal: ", identity.status().message()));
  return Certificate{.identity = *identity,
                     .serial = SerialOf(certificate),
                     .not_before = TimeOf(X509_get0_notBefore(certificate)),
                     .not_after = TimeOf(X509_get0_notAfter(certificate))};
}

std::string IpText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (bytes.size() != sizeof(in_addr) && bytes.size() != sizeof(in6_addr)) return "?";
  return inet_ntop(family, bytes.data(), text, sizeof(text)) == nullptr ? "?" : text;
}

// Returns the DNS names and IP addresses among the alternative names.
std::vector<std::string> AddressesOf(X509* certificate) {
  std::vector<std::string> addresses;
  const GeneralNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    const ASN1_STRING* value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                            static_cast<size_t>(ASN1_STRING_length(value)));
    addresses.push_back(name->type == GEN_DNS ? bytes : IpText(bytes));
  }
  return addresses;
}

std::string KeyText(X509* certificate) {
  const EVP_PKEY* key = X509_get0_pubkey(certificate);
  const char* type = key == nullptr ? nullptr : EVP_PKEY_get0_type_name(key);
  if (type == nullptr) return "unknown";
  return absl::StrCat(type, " ", EVP_PKEY_get_bits(key), " bits");
}

std::string Sha256Of(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return "";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(std::string_view pem_or_der) {
  const absl::StatusOr<std::vector<X509Ptr>> certificates = ParseCertificates(pem_or_der);
  if (!certificates.ok()) return absl::UnauthenticatedError(certificates.status().message());
  return ReadSvid(certificates->front().get());
}

absl::Status CheckDates(const Certificate& certificate, absl::Time now, const std::string& name) {
  if (now < certificate.not_before) {
    return absl::UnauthenticatedError(
        absl::StrCat(name, ": the certificate of ", certificate.identity.ToUri(),
                     " is not valid before ", UtcText(certificate.not_before), ", and it is ",
                     UtcText(now), "; set the clock of this machine, or wait"));
  }
  if (now > certificate.not_after) {
    return absl::UnauthenticatedError(absl::StrCat(
        name, ": the certificate of ", certificate.identity.ToUri(), " has expired on ",
        UtcText(certificate.not_after), ", and it is ", UtcText(now), "; issue a new one"));
  }
  return absl::OkStatus();
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

absl::StatusOr<std::vector<CertificateDescription>> DescribeCertificates(
    std::string_view pem_or_der) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates, ParseCertificates(pem_or_der));
  std::vector<CertificateDescription> descriptions;
  for (const X509Ptr& each : certificates) {
    descriptions.push_back({.subject = NameText(X509_get_subject_name(each.get())),
                            .issuer = NameText(X509_get_issuer_name(each.get())),
                            .serial = SerialOf(each.get()),
                            .not_before = TimeOf(X509_get0_notBefore(each.get())),
                            .not_after = TimeOf(X509_get0_notAfter(each.get())),
                            .uris = UrisOf(each.get()),
                            .addresses = AddressesOf(each.get()),
                            .is_ca = IsAuthority(each.get()),
                            .key = KeyText(each.get()),
                            .sha256 = Sha256Of(each.get()),
                            .certificate = ReadSvid(each.get())});
  }
  return descriptions;
}

}  // namespace shoal
