import type { SignatureLabel } from '../../core/events/event-labels.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { overloadProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import { badSignatureProblem, UNVERIFIABLE_BODY } from './signature-problems.ts';
import type { InvalidSignature, SignatureClaim, SignatureScheme } from './signature-types.ts';
import { verifyClaim } from './verify-signature.ts';

type Context = Pick<ExchangeContext, 'listen' | 'random'>;

const EMPTY = Buffer.alloc(0);

/** Verifies the signature of one request, in two steps: its headers, before its body is read, and then the body. */
export class SignatureCheck {
  readonly #routed: RoutedRequest;
  readonly #scheme: SignatureScheme;
  readonly #context: Context;
  readonly #claim: SignatureClaim | InvalidSignature;

  constructor(routed: RoutedRequest, scheme: SignatureScheme, context: Context) {
    this.#routed = routed;
    this.#scheme = scheme;
    this.#context = context;
    // At the arrival: the time that an upload takes does not count.
    this.#claim = scheme.readClaim(routed.request.rawHeaders, Date.now());
  }

  /** Why the request is refused without its body; undefined if the body decides. */
  headProblem(): Problem | undefined {
    if (this.#claim.kind === 'invalid') return this.#refuse(this.#claim);
    const { request, route } = this.#routed;
    return Number(request.headers['content-length'] ?? 0) > route.replayLimit ? UNVERIFIABLE_BODY : undefined;
  }

  /** Why the request is refused; undefined if its signature is valid. @param body undefined if the request has none */
  bodyProblem(body: Pick<RequestBody, 'whole' | 'retention'> | undefined): Problem | undefined {
    if (body?.retention === 'too_long') return UNVERIFIABLE_BODY;
    if (body?.retention === 'no_memory') return overloadProblem('replay_memory', this.#context.random);
    const result =
      this.#claim.kind === 'invalid' ? this.#claim : verifyClaim(this.#scheme, this.#claim, body?.whole ?? EMPTY);
    if (result.kind === 'invalid') return this.#refuse(result);
    this.#count('valid');
    return undefined;
  }

  #refuse({ reason }: InvalidSignature): Problem {
    this.#count(reason);
    return badSignatureProblem(reason, this.#scheme.header);
  }

  #count(result: SignatureLabel): void {
    this.#context.listen({ type: 'signature', route: this.#routed.route.name, result });
  }
}

/** Undefined if nothing is to be verified. A browser sends preflights without a signature, and without a body. */
export function beginSignatureCheck(routed: RoutedRequest, context: Context): SignatureCheck | undefined {
  const { route, request, isPreflight } = routed;
  if (route.verify === undefined || (isPreflight && !request.hasBody)) return undefined;
  return new SignatureCheck(routed, route.verify, context);
}
