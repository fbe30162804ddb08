/**
 * The error for a message that breaks rules. It has a text, and details in both forms that clients look for.
 * The size of the details is limited because metadata has little room.
 */
import { toBinary } from '@bufbuild/protobuf';
import { pathToString } from '@bufbuild/protobuf/reflect';
import { type Violation, violationsToProto } from '@bufbuild/protovalidate';
import type { ErrorDetail } from '../../core/errors/status-details.ts';
import { BadRequest } from '../../details/index.ts';

/** Limit of each detail in bytes. Metadata has at most 8 KiB in total, and must fit into a slot. */
const detailBytesMax = 2048;
const textMax = 400;
const namedMax = 3;

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

const fieldOf = ({ field }: Violation): string => (field.length === 0 ? '' : pathToString(field));

/**
 * Returns a text such as `name: must be at least 2 characters [string.min_len]` for the first few violations.
 */
export function violationsText(violations: readonly Violation[]): string {
  const named = violations.slice(0, namedMax).map((violation) => {
    const { message, ruleId } = violation;
    const field = fieldOf(violation);
    return cut(`${field === '' ? '' : `${field}: `}${message || 'the rule is broken'} [${ruleId}]`, textMax);
  });
  const rest = violations.length - named.length;
  return `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`;
}

/** Returns the encoding of the first violations that fit into a detail. */
function asManyAs(violations: readonly Violation[], encode: (some: Violation[]) => Uint8Array): Uint8Array {
  for (let count = violations.length; ; count = Math.floor(count / 2)) {
    const bytes = encode(violations.slice(0, count));
    if (bytes.length <= detailBytesMax || count === 0) return bytes;
  }
}

function ours(violations: Violation[]): Uint8Array {
  const [message, schema] = violationsToProto(violations);
  return toBinary(schema, message);
}

function google(violations: Violation[]): Uint8Array {
  return BadRequest.encode({
    fieldViolations: violations.map((violation) => ({
      field: fieldOf(violation),
      description: violation.message,
      // google.rpc requires UPPER_SNAKE_CASE with at most 63 characters.
      reason: violation.ruleId
        .replace(/[^A-Za-z0-9]+/g, '_')
        .toUpperCase()
        .slice(0, 63),
    })),
  });
}

/**
 * Returns the violations as details in two forms: buf.validate.Violations, which other implementations of
 * protovalidate send, and google.rpc.BadRequest, which every gRPC client knows.
 */
export function violationDetails(violations: readonly Violation[]): ErrorDetail[] {
  return [
    { type: 'buf.validate.Violations', value: asManyAs(violations, ours) },
    { type: BadRequest.typeName, value: asManyAs(violations, google) },
  ];
}
