// A key and a self-signed certificate, as PEM.
//
// Node signs but makes no certificates, and a key in the tree would look like a secret; so the few
// DER records are put together here.

import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

const record = (tag, ...parts) => {
  const content = Buffer.concat(parts);
  const size = content.length;
  const long = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...long]), content]);
};
const sequence = (...parts) => record(0x30, ...parts);
const utcTime = (date) => record(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));

// 1.2.840.113549.1.1.11, sha256WithRSAEncryption; and 2.5.4.3, the common name.
const ALGORITHM = sequence(Buffer.from("06092a864886f70d01010b0500", "hex"));
const NAME = sequence(
  record(0x31, sequence(Buffer.from("0603550403", "hex"), record(0x0c, Buffer.from("conformance")))),
);

export function selfSigned() {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const now = Date.now();
  const claims = sequence(
    record(0xa0, Buffer.from("020102", "hex")), // version 3
    record(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), // serial number
    ALGORITHM,
    NAME,
    sequence(utcTime(new Date(now - 60_000)), utcTime(new Date(now + 86_400_000))),
    NAME,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = record(0x03, Buffer.from([0]), sign("sha256", claims, privateKey));
  const der = sequence(claims, ALGORITHM, signature).toString("base64").match(/.{1,64}/g).join("\n");
  const key = privateKey.export({ type: "pkcs8", format: "pem" });
  return `${key}-----BEGIN CERTIFICATE-----\n${der}\n-----END CERTIFICATE-----\n`;
}
