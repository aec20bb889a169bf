# ---- speed of the matrix products ---------------------------------------------------------------

.PHONY: bench-kernels

$(BUILD)/bench/kernels: bench/kernels.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(compile) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(PTHREAD)

bench-kernels: $(BUILD)/bench/kernels ## measures the matrix products of this CPU's back ends; KERNEL_ARGS
	$(Q)$< $(KERNEL_ARGS)
