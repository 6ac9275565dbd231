/**
 * For the hundreds of programs that the tests start: with the default of 16 MB, they take a quarter more memory before they are ready,
 * which costs more CPU time on a virtual machine than the additional garbage collections.
 */
export const nodeOptions = ['--max-semi-space-size=4']
