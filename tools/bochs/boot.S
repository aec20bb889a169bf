/*
 * boot.S: from a Multiboot loader (32 bits, no paging) to the C library's _start in 64-bit mode,
 * with the vector state that an operating system would enable. Intel SDM, volume 3A, chapters 2
 * (control registers), 4.5 (paging) and 10.8.5 (entering IA-32e mode); Multiboot 0.6.96.
 */
#define STACK_BYTES 0x200000

    /* The header as an ELF note, which linkers place into the first 8 KiB. */
    .section .note.multiboot, "a", @note
    .balign 4
    .long 4, header_end - header, 1
    .asciz "MBT"
header:
    .long 0x1badb002, 0x10000, -(0x1badb002 + 0x10000) /* addresses follow: no ELF to parse */
    .long header, __ehdr_start, 0, _end, boot
header_end:

    .text
    .code32
    .globl boot
boot:
    cli
    cld
    movl $tables_end, %ecx
    movl $pml4, %edi
    subl %edi, %ecx
    xorl %eax, %eax
    rep stosb

    /* The first GiB at its own addresses, in pages of 2 MiB. */
    movl $pdpt + 3, pml4
    movl $directory + 3, pdpt
    movl $0x83, %eax
    movl $directory, %edi
1:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    cmpl $tables_end, %edi
    jb 1b
    movl $pml4, %eax
    movl %eax, %cr3
    movl $0x40620, %eax             /* CR4: PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx          /* EFER: SCE (the syscall instruction), LME */
    rdmsr
    orl $0x101, %eax
    wrmsr
    movl $0x80000033, %eax          /* CR0: PG, NE, ET, MP, PE; EM and TS off */
    movl %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $long_mode

    .code64
long_mode:
    movl $16, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %ecx, %ecx
    xorl %edx, %edx
    movl $0xe7, %eax                /* XCR0: x87, xmm, ymm, mask and zmm registers */
    xsetbv
    movl $0xc0000081, %ecx          /* STAR: syscall stays in segments 8 and 16 */
    xorl %eax, %eax
    movl $8, %edx
    wrmsr
    movl $0xc0000082, %ecx          /* LSTAR */
    movl $on_syscall, %eax
    xorl %edx, %edx
    wrmsr

    /* What a process finds on its stack: argc, argv, environment, auxiliary vector. */
    movl $stack_end, %esp
    pushq $0
    pushq $0                        /* AT_NULL */
    pushq $random_bytes
    pushq $25                       /* AT_RANDOM */
    pushq $4096
    pushq $6                        /* AT_PAGESZ */
    pushq $0                        /* end of the environment */
    pushq $0                        /* end of argv */
    pushq $program
    pushq $1
    xorl %edx, %edx
    xorl %ebp, %ebp
    jmp _start

/*
 * rax number, rdi rsi rdx first arguments, rcx where to go on: all registers but rax, rcx and r11
 * survive, and so do the 128 bytes below the stack pointer. system.c uses no vector registers.
 */
on_syscall:
    leaq -128(%rsp), %rsp
    pushq %rcx
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %rbp
    movq %rsp, %rbp
    andq $-16, %rsp
    movq %rax, %rcx
    call system_call
    movq %rbp, %rsp
    popq %rbp
    popq %r10
    popq %r9
    popq %r8
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rcx
    leaq 128(%rsp), %rsp
    jmp *%rcx

    .section .rodata
    .balign 8
gdt:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff /* null, 64-bit code, data */
gdt_pointer:
    .word 23
    .long gdt
program:
    .asciz "selftest"
random_bytes:
    .skip 16

    .bss
    .balign 4096
pml4:
    .skip 4096
pdpt:
    .skip 4096
directory:
    .skip 4096
tables_end:
    .balign 64
    .skip STACK_BYTES
stack_end:

    .section .note.GNU-stack, "", @progbits
