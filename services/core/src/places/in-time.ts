import { setTimeout as wait } from 'node:timers/promises'

/** How long a place may keep calls on the others waiting. Below the two seconds that gateways wait for what they ask about keys. */
const patienceMs = 1_500
/** How long places may keep a call waiting that has what it needs: another one may have the stronger claim on the same object. */
const graceMs = 250

type Named = { readonly name: string }

/**
 * The answer of one of several places, for calls that can do without it: a place that is frozen or flooded must not stop the others.
 *
 * @throws Error if it takes too long
 */
export async function inTime<Answer>(place: Named, answer: Promise<Answer>): Promise<Answer> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`timeout: ${place.name} has not answered yet`)), patienceMs)
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Asks all places at once.
 *
 * @param isEnough whether these answers are all that is needed: then the other places have a moment more
 * @returns null for each place that does not answer in time
 * @throws the error of a place if none answers
 */
export async function askAll<Each extends Named, Answer extends object>(
  places: readonly Each[],
  ask: (place: Each, index: number) => Promise<Answer>,
  isEnough: (answers: readonly Answer[]) => boolean = () => false,
): Promise<(Answer | null)[]> {
  const [only] = places
  if (only && places.length === 1) return [await ask(only, 0)]
  const answers: (Answer | null)[] = places.map(() => null)
  const errors: unknown[] = []
  const enough = Promise.withResolvers<void>()
  const asking = places.map(async (place, index) => {
    try {
      answers[index] = await inTime(place, ask(place, index))
      if (isEnough(answers.filter(answer => answer !== null))) enough.resolve()
    } catch (error) {
      errors.push(error)
    }
  })
  const all = Promise.all(asking)
  await Promise.race([all, enough.promise.then(() => Promise.race([all, wait(graceMs, undefined, { ref: false })]))])
  if (errors.length === places.length) throw errors[0]
  return [...answers]
}
